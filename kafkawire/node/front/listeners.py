"""Listeners of a node: their clients, and the handlers of their requests.

Those of brokers share the limits of connections, and nothing but the machines with those of
controllers. What a client is shown of the brokers is where they have a listener like its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...broker import Endpoint
from ...broker.broker import Broker
from ...broker.context import Context
from ...broker.events import (
    AcceptDue,
    Authenticated,
    Connected,
    Disconnected,
    Drained,
    IdleConnection,
    MetadataAwaited,
    MutedUntil,
    ReplyDue,
    Unreadable,
)
from ...broker.handlers import Handler, error_response
from ...broker.network.acceptors import ConnectionQuotas
from ...broker.network.scheduler import Process
from ...broker.network.socket_server import SocketServer
from ...broker.request import Request
from ...broker.request_handler import RequestHandler
from ...broker.security.protocols import SecurityProtocol
from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol import ErrorCode

if TYPE_CHECKING:
    from ...broker.security.server import ScramCredentials, TokenCredentials

ConnectionDeadline = AcceptDue | IdleConnection | MetadataAwaited | MutedUntil | ReplyDue
ClientEvent = Connected | Drained | Disconnected | Unreadable | Authenticated


class Users(NamedTuple):
    """Who may authenticate.

    credentials: of SCRAM, besides those of the passwords. tokens: of delegation tokens.
    """

    passwords: Mapping[str, str]
    credentials: ScramCredentials | None = None
    tokens: TokenCredentials | None = None


class Listeners:
    """The listeners of brokers, or of controllers. `serve` comes before the first event.

    endpoints: by the names of the listeners. protocol_of: returns the protocol of a listener.
    quotas: of connections, which all listeners of the node share. users: who may authenticate.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        context: Context,
        handlers: Mapping[ApiKey, Handler],
        protocol_of: Callable[[str], SecurityProtocol],
        quotas: ConnectionQuotas,
        users: Users,
    ) -> None:
        self.endpoints = endpoints
        self.context = context
        self._handlers = handlers
        self._protocol_of = protocol_of
        self.quotas = quotas
        passwords, credentials, tokens = users
        self.server = SocketServer(
            context, self._error_response, passwords, quotas, credentials, tokens
        )
        self.channel = self.server.channel
        self.scheduler = self.server.scheduler
        self._request_handler: RequestHandler | None = None

    def _error_response(self, request: Request, error: ErrorCode) -> Message:
        return error_response(self._handlers, request, error)

    def serve(self, brokers: Mapping[str, Broker]) -> None:
        """Set what the handlers of each listener work with."""
        self._request_handler = RequestHandler(
            self.context,
            self.channel,
            brokers,
            self._handlers,
        )

    def handle(self, event: ClientEvent, now: float) -> None:
        """Handle an event of a connection."""
        _HANDLERS[type(event)](self, event, now)

    @property
    def process(self) -> Process:
        """What processes a request of a connection."""
        assert self._request_handler is not None
        return self._request_handler.process

    def _connected(self, event: Connected, now: float) -> None:
        self.server.connected(event, self._protocol_of(event.listener), now)

    def _authenticated(self, event: Authenticated, _now: float) -> None:
        self.server.authenticated(event)

    def _unreadable(self, event: Unreadable, _now: float) -> None:
        self.server.unreadable(event)

    def _drained(self, event: Drained, _now: float) -> None:
        self.server.drained(event)

    def _disconnected(self, event: Disconnected, _now: float) -> None:
        assert self._request_handler is not None
        self.server.disconnected(event, self._request_handler.forget)

    def metadata_changed(self, now: float) -> None:
        """Go on with the requests that wait for a change of the metadata."""
        assert self._request_handler is not None
        self._request_handler.metadata_changed(now)

    def due(self, due: ConnectionDeadline, now: float) -> None:
        """Handle an expired deadline of a connection."""
        if isinstance(due, AcceptDue):
            self.server.acceptors.accept(due.listener, now)
        elif isinstance(due, IdleConnection):
            self.server.idle(due, now)
        elif isinstance(due, MutedUntil):
            self.channel.unmute(due.connection)
        elif isinstance(due, MetadataAwaited):
            assert self._request_handler is not None
            self._request_handler.metadata_awaited(due, now)
        else:
            self.channel.send_delayed(due.reply_to)


_HANDLERS: Final[Mapping[type[ClientEvent], Callable[[Listeners, Any, float], None]]] = {
    Authenticated: Listeners._authenticated,
    Connected: Listeners._connected,
    Drained: Listeners._drained,
    Disconnected: Listeners._disconnected,
    Unreadable: Listeners._unreadable,
}
