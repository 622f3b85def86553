"""One listener of a node: its clients, and the handlers of their requests.

Law: listeners share nothing but the machines behind their handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...broker import Effect, Endpoint
from ...broker.broker import Broker
from ...broker.context import Context
from ...broker.effects import Report
from ...broker.events import (
    Connected,
    Disconnected,
    Drained,
    IdleConnection,
    Received,
    ReplyDue,
    Unreadable,
)
from ...broker.handlers import Handler
from ...broker.network.socket_server import SocketServer
from ...broker.request import Request
from ...broker.request_handler import RequestHandler
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol import ErrorCode

ClientEvent = Connected | Received | Drained | Disconnected | Unreadable


class Listener:
    """A listener. `serve` comes before the first event."""

    def __init__(
        self, name: str, endpoint: Endpoint, context: Context, handlers: Mapping[ApiKey, Handler]
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.context = context
        self._handlers = handlers
        self.server = SocketServer(context, self._error_response, {})
        self.channel = self.server.channel
        self._request_handler: RequestHandler | None = None

    def _error_response(self, request: Request, error: ErrorCode) -> Message:
        return self._handlers[request.api_key].error_response(request.body, error)

    def serve(self, broker: Broker) -> None:
        """Set what the handlers work with."""
        brokers = {self.endpoint.node_id: broker}
        self._request_handler = RequestHandler(self.context, self.channel, brokers, self._handlers)

    def handle(self, event: ClientEvent, now: float) -> None:
        """Handle an event of a connection."""
        _HANDLERS[type(event)](self, event, now)

    def run(self, now: float) -> list[Effect]:
        """Process requests for one time slice; return what is to be done."""
        assert self._request_handler is not None
        self.server.run(self._request_handler.process, now)
        return self.context.take_effects()

    def _connected(self, event: Connected, now: float) -> None:
        self.server.connected(event, None, now)

    def _received(self, event: Received, now: float) -> None:
        self.server.received(event, now)

    def _unreadable(self, event: Unreadable, _now: float) -> None:
        self.server.unreadable(event)

    def _drained(self, event: Drained, _now: float) -> None:
        self.server.drained(event)

    def _disconnected(self, event: Disconnected, _now: float) -> None:
        assert self._request_handler is not None
        self.server.disconnected(event, self._request_handler.forget)

    def finish(self, reply_to: int, now: float) -> None:
        """Finish a request without a response."""
        request = self.channel.pending.get(reply_to)
        if request is not None:
            self.channel.finish(request)
            self.context.emit(Report(request, None, now - request.at))

    def due(self, due: IdleConnection | ReplyDue, now: float) -> None:
        """Handle an expired deadline of a connection."""
        if isinstance(due, IdleConnection):
            self.server.idle(due, now)
        else:
            self.channel.send_delayed(due.reply_to)


_HANDLERS: Final[Mapping[type[ClientEvent], Callable[..., None]]] = {
    Connected: Listener._connected,
    Received: Listener._received,
    Drained: Listener._drained,
    Disconnected: Listener._disconnected,
    Unreadable: Listener._unreadable,
}
