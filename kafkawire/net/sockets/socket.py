"""A client's socket in asyncio: its connection attempt, writes, and what it reports.

A socket that is closed reports nothing more; `closed` is done when none of it is left.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Protocol

from ...client.network.transport import (
    Connect,
    ConnectionLost,
    ConnectionMade,
    ShellEvent,
    WritingPaused,
    WritingResumed,
)
from .buffers import write_buffers
from .readiness import Readiness
from .reasons import is_fatal, reason_of

CLOSE_TIMEOUT_S: Final = 5.0
"""How long pending writes may be flushed, and the peer may take, after a connection is closed."""


class SocketOwner(Protocol):
    """What a socket needs of its owner."""

    def receive(self, event: ShellEvent) -> None:
        """Handle an event of a socket."""

    def received(self, connection: int, data: bytes) -> None:
        """Handle bytes of a socket."""

    def forget(self, socket: Socket) -> None:
        """Remove a socket that has closed."""


class Socket(asyncio.Protocol):
    """One socket, from its connection attempt to its end; `closed` is done then.

    readiness: the sockets among which it is while it is connected.
    """

    def __init__(
        self,
        driver: SocketOwner,
        connect: Connect,
        tls: ssl.SSLContext | None = None,
        readiness: Readiness | None = None,
    ) -> None:
        self.number = connect.connection
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._driver = driver
        self._transport: asyncio.Transport | None = None
        self._readiness = readiness
        self._watched: int | None = None
        self._closing = False
        self._deadline: asyncio.TimerHandle | None = None
        self._connecting = asyncio.ensure_future(self._connect(connect, tls))
        self._connecting.add_done_callback(self._connect_done)

    def write(self, buffers: list[bytes]) -> None:
        """Send bytes; after the peer closed they are dropped: its ConnectionLost is pending."""
        assert self._transport is not None
        write_buffers(self._transport, buffers)

    def close(self, *, after_peer: bool = False) -> None:
        """Close once pending writes are flushed; after_peer: and once the peer has closed."""
        self._closing = True
        if self._transport is None:
            self._connecting.cancel()
        else:
            if after_peer and self._transport.can_write_eof():  # not with TLS
                self._transport.write_eof()
            else:
                self._transport.close()
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(CLOSE_TIMEOUT_S, self.abort)

    def abort(self) -> None:
        """Close immediately."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self._connecting.cancel()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._readiness is not None:
            self._watched = self._readiness.add(transport)
        if self._closing:
            transport.abort()
        else:
            self._driver.receive(ConnectionMade(self.number))

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._driver.received(self.number, data)

    def pause_writing(self) -> None:
        if not self._closing:
            self._driver.receive(WritingPaused(self.number))

    def resume_writing(self) -> None:
        if not self._closing:
            self._driver.receive(WritingResumed(self.number))

    def connection_lost(self, error: Exception | None) -> None:
        self._on_lost(reason_of(error, tls=False) if error else "the broker closed the connection")

    def _on_lost(self, reason: str, fatal: bool = False) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._readiness is not None and self._watched is not None:
            self._readiness.remove(self._watched)
            self._watched = None
        self._driver.forget(self)
        if not self.closed.done():
            self.closed.set_result(None)
        if not self._closing:
            self._closing = True
            self._driver.receive(ConnectionLost(self.number, reason, fatal))

    async def _connect(self, connect: Connect, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        name = connect.host if tls is not None else None
        try:
            await loop.create_connection(
                lambda: self, connect.host, connect.port, ssl=tls, server_hostname=name
            )
        except (OSError, ValueError, OverflowError) as error:
            # a broker may report an invalid host or port
            self._on_lost(reason_of(error, tls=tls is not None), fatal=is_fatal(error))

    def _connect_done(self, attempt: asyncio.Task[None]) -> None:
        """Handle an attempt that `close` or `abort` cancelled, perhaps before it had begun."""
        if attempt.cancelled():
            self._on_lost("cancelled")
