"""One client's socket: bytes to the server's machine, and what it answers back.

Law: what the client does not read is not kept without bound: the machine hears when it has left.
TLS is a layer in here, so a connection exists for the machine before its handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Final

from ..broker import Connected, Drained, Endpoint
from .server_tls import TlsSession

if TYPE_CHECKING:
    from .server import Server

HIGH_WATER: Final = 1 << 18
"""Bytes that a transport keeps for a client before it says so."""
CLOSE_TIMEOUT_SECONDS: Final = 5.0
"""How long a client that is being closed may take to read what was sent."""


class ServerConnection(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, server: Server, endpoint: Endpoint) -> None:
        self.server = server
        self.endpoint = endpoint
        self.number = 0
        self._full = False
        self._drain_awaited = False
        self._stream: int | None = None
        context = server.config.tls
        self._tls = None if context is None else TlsSession(context)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        # asyncio does so itself, but not where the listener's protocol number is left to be 0:
        # small answers would wait for the client's delayed ACK of those before, 40 ms
        plug = transport.get_extra_info("socket")
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.server.opened(self)
        peer = transport.get_extra_info("peername")
        recording = self.server.recording
        if recording is not None:
            self._stream = recording.open(peer[:2], (self.endpoint.host, self.endpoint.port))
        self.server.handle(Connected(self.number, self.endpoint.node_id, str(peer[0])))

    def data_received(self, data: bytes) -> None:
        if self._tls is not None:
            try:
                data = self._tls.receive(data)
            except ssl.SSLError as error:
                self.transport.write(self._tls.pending())  # an alert
                self.server.unreadable(self.number, f"TLS: {error.reason or error}")
                return
            self.transport.write(self._tls.pending())
            if not data:
                return
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.received(self._stream, data)
        self.server.received(self.number, data)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._drain_awaited:
            self._drain_awaited = False
            self.server.handle(Drained(self.number))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.closed(self._stream)
        self.server.lost(self.number)

    # -- what the machine asks for

    def send(self, data: bytes) -> None:
        """Send an answer."""
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.sent(self._stream, data)
        if self.transport.is_closing():
            return
        if self._tls is not None:
            self._tls.send(data)
            data = self._tls.pending()
        self.transport.write(data)

    def await_drain(self) -> None:
        """Say when what was sent has left."""
        if self._full:
            self._drain_awaited = True
        else:
            self.server.loop.call_soon(self._drained)

    def _drained(self) -> None:
        if self.number in self.server.connections:
            self.server.handle(Drained(self.number))

    def pause(self) -> None:
        """Read no further."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        """Close when what was sent has left, or when the client takes too long to read it."""
        if self._tls is not None and not self.transport.is_closing():
            self._tls.close()
            self.transport.write(self._tls.pending())
        self.transport.close()
        self.server.loop.call_later(CLOSE_TIMEOUT_SECONDS, self.transport.abort)

    def abort(self) -> None:
        """Close now."""
        self.transport.abort()
