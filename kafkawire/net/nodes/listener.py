"""A listener of a node: what the connections of its clients need of their server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ...broker import Connected, Disconnected, Drained, Endpoint, Received, Unreadable
from ...broker import Event as ClientEvent
from ...node.front.front import Accepted, Event
from ..server_transport import ServerConnection

if TYPE_CHECKING:
    import ssl

    from ..server_recording import Recording


class ListenerOwner(Protocol):
    """The server of a node."""

    loop: asyncio.AbstractEventLoop
    recording: Recording | None

    @property
    def connections(self) -> Mapping[int, ServerConnection]: ...
    def handle(self, event: Event, /) -> None: ...
    def opened(self, connection: ServerConnection, /) -> int: ...
    def closed(self, number: int, /) -> None: ...


class NodeListener:
    """A listener: the owner of its clients' connections."""

    def __init__(
        self, server: ListenerOwner, name: str, endpoint: Endpoint, tls: ssl.SSLContext | None
    ) -> None:
        self.server = server
        self.tls = tls
        self.name = name
        self.endpoint = endpoint
        self.loop = server.loop
        self.recording: Recording | None = server.recording

    def handle(self, event: ClientEvent) -> None:
        """Pass an event of a connection to the node."""
        if isinstance(event, Connected):
            self.server.handle(Accepted(self.name, event.connection, event.host))
        elif isinstance(event, Received | Drained | Disconnected | Unreadable):
            self.server.handle(event)

    def opened(self, connection: ServerConnection) -> int:
        """Register a connection and return its id."""
        return self.server.opened(connection)

    def is_open(self, number: int) -> bool:
        """Whether a connection is open."""
        return number in self.server.connections

    def received(self, number: int, data: bytes) -> None:
        """Handle bytes received from a client."""
        self.server.handle(Received(number, data))

    def unreadable(self, number: int, reason: str) -> None:
        """Close a connection that cannot be read."""
        self.server.handle(Unreadable(number, reason))

    def lost(self, number: int) -> None:
        """Handle the end of a connection."""
        self.server.handle(Disconnected(number))
        self.server.closed(number)
