"""CreateDelegationToken: creates a token with which others authenticate as its owner (KIP-48).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   request +owner_principal_type +owner_principal_name; response +token_requester_principal_type
     +token_requester_principal_name │ a token for another owner (KIP-373)
"""

from __future__ import annotations

from ...controller.operations.delegation_tokens import (
    REQUESTER_FROM,
    USER_TYPE,
    forget_requester,
    refusal_of,
)
from ...messages.create_delegation_token_request import CreateDelegationTokenRequest
from ...messages.create_delegation_token_response import CreateDelegationTokenResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding.principals import NO_TIME, is_allowed, principal_of
from ..network.connection import Connection
from ..request import HandlerResult, Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: CreateDelegationTokenRequest,
    connection: Connection,
    now: float,
) -> HandlerResult:
    """Let the controller create a token for the principal of the connection."""
    error = E.NONE
    if not is_allowed(request, connection.protocol, connection.authentication):
        error = E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif any(each.principal_type != USER_TYPE for each in body.renewers):
        error = E.INVALID_PRINCIPAL_TYPE
    if error:
        response = refusal_of(body, error, principal_of(request), NO_TIME)
        if request.version < REQUESTER_FROM:
            forget_requester(response)
        return response
    return broker.controller.forward_for(principal_of(request), request, now)


def error_response(
    _body: CreateDelegationTokenRequest, error: ErrorCode
) -> CreateDelegationTokenResponse:
    """Return a response with the error."""
    return CreateDelegationTokenResponse(error_code=error)
