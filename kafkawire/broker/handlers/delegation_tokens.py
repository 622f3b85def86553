"""What changes delegation tokens: the controller does, for the principal of the connection."""

from __future__ import annotations

from ...controller.operations.delegation_tokens import refusal_of
from ...primitives import Message
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding.principals import NO_TIME, is_allowed, principal_of
from ..network.connection import Connection
from ..request import HandlerResult, Request


def change_token(
    broker: Broker, request: Request, body: Message, connection: Connection, now: float
) -> HandlerResult:
    """Forward a request that renews or expires a token."""
    principal = principal_of(request)
    if not is_allowed(request, connection.protocol, connection.authentication):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return refusal_of(body, error, principal, NO_TIME)
    return broker.controller.forward_for(principal, request, now)
