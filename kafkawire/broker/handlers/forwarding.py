"""Forwards requests to the controller: the `handle` of each API that it decides on."""

from __future__ import annotations

from ...primitives import Message
from ..broker import Broker
from ..network.connection import Connection
from ..request import HandlerResult, Request


def handle(
    broker: Broker, request: Request, _body: Message, _connection: Connection, now: float
) -> HandlerResult:
    """Let the controller decide on a request."""
    return broker.controller.forward(request, now)
