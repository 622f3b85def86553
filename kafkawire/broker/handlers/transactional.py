"""The handler of the APIs of transactions."""

from __future__ import annotations

from ...primitives import Message
from ...protocol import ErrorCode
from ...transactions.responses import ERRORS
from ..broker import Broker
from ..network.connection import Connection
from ..request import HandlerResult, Request


def handle(
    broker: Broker, request: Request, _body: Message, _connection: Connection, now: float
) -> HandlerResult:
    """Hand a request to the transactions of the node."""
    return broker.transactions.apis.handle(request, now)


def error_response(body: Message, error: ErrorCode) -> Message:
    """Build a response with the error."""
    return ERRORS[type(body)](body, error)
