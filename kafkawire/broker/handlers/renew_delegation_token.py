"""RenewDelegationToken: lets a token live longer, up to its maximum (KIP-48).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from ...controller.operations.delegation_tokens import refusal_of
from ...messages.renew_delegation_token_request import RenewDelegationTokenRequest
from ...messages.renew_delegation_token_response import RenewDelegationTokenResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding.principals import NO_TIME, is_allowed, principal_of
from ..network.connection import Connection
from ..request import HandlerResult, Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: RenewDelegationTokenRequest,
    connection: Connection,
    now: float,
) -> HandlerResult:
    """Let the controller renew a token, for the principal of the connection."""
    principal = principal_of(request)
    if not is_allowed(request, connection.listener, connection.authentication):
        return refusal_of(body, E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, principal, NO_TIME)
    return broker.controller.forward_for(principal, request, now)


def error_response(
    _body: RenewDelegationTokenRequest, error: ErrorCode
) -> RenewDelegationTokenResponse:
    """Return a response with the error."""
    return RenewDelegationTokenResponse(error_code=error)
