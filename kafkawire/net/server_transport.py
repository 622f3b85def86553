"""The asyncio protocol of one client connection, with TLS.

Law: unread responses are bounded: the cluster is notified when they are flushed. TLS is a layer in
here, so the cluster knows a connection before its handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Final, Protocol

from ..broker import Connected, Drained, Endpoint, Event
from .output import Output
from .server_tls import TlsSession

if TYPE_CHECKING:
    from .server_recording import Recording

CLOSE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds for a client to read the last responses before its connection is aborted."""


class ConnectionOwner(Protocol):
    """What a connection needs of its server."""

    recording: Recording | None
    loop: asyncio.AbstractEventLoop

    @property
    def tls(self) -> ssl.SSLContext | None: ...
    def handle(self, event: Event) -> None: ...
    def opened(self, connection: ServerConnection) -> int: ...
    def is_open(self, number: int) -> bool: ...
    def received(self, number: int, data: bytes) -> None: ...
    def unreadable(self, number: int, reason: str) -> None: ...
    def lost(self, number: int) -> None: ...


class ServerConnection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, server: ConnectionOwner, endpoint: Endpoint) -> None:
        self.server = server
        self.endpoint = endpoint
        self.number = 0
        self._closing = False
        self._drain_awaited = False
        self._stream: int | None = None
        context = server.tls
        self._tls = None if context is None else TlsSession(context)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._output = Output(transport)
        # asyncio sets it too, but not if the listener's protocol number is 0: small responses
        # would wait for the client's delayed ACK, 40 ms
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
                self._send_pending()  # an alert
                self.server.unreadable(self.number, f"TLS: {error.reason or error}")
                return
            self._send_pending()
            if self._tls.is_closed:
                self._close_tls()
            if not data:
                return
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.received(self._stream, data)
        self.server.received(self.number, data)

    def _close_tls(self) -> None:
        """Respond to a close_notify, as a client may wait for that, and close as at the end."""
        if not self._closing and not self.transport.is_closing():
            assert self._tls is not None
            self._tls.close()
            self._send_pending()
            if not self.eof_received():
                self.transport.close()

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()
        if not self._output.is_flushed:
            return
        if self._closing:
            self.transport.close()
        if self._drain_awaited:
            self._drain_awaited = False
            self.server.handle(Drained(self.number))

    def eof_received(self) -> bool:
        """Close when the responses are sent; True keeps the transport open until then."""
        self._closing = not self._output.is_flushed
        return self._closing

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._output.clear()
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.closed(self._stream)
        self.server.lost(self.number)

    # -- effects of the cluster

    def send(self, buffers: list[bytes]) -> None:
        """Send a response frame, in pieces."""
        if self.server.recording is not None and self._stream is not None:
            self.server.recording.sent(self._stream, b"".join(buffers))
        if self.transport.is_closing():
            return
        if self._tls is None:
            self._output.put(buffers)
            return
        if self._tls.is_closed:
            return
        for buffer in buffers:
            self._tls.send(buffer)
        self._send_pending()

    def _send_pending(self) -> None:
        """Send what TLS has encrypted."""
        if self._tls is not None:
            self._output.put((self._tls.pending(),))

    def await_drain(self) -> None:
        """Raise `Drained` when all sent bytes are flushed."""
        if self._output.is_flushed:
            self.server.loop.call_soon(self._drained)
        else:
            self._drain_awaited = True

    def _drained(self) -> None:
        if self.server.is_open(self.number):
            self.server.handle(Drained(self.number))

    def pause(self) -> None:
        """Pause reading."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Resume reading."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        """Close when all sent bytes are flushed, or after CLOSE_TIMEOUT_SECONDS."""
        if self._tls is not None and not self.transport.is_closing():
            self._tls.close()
            self._send_pending()
        self._closing = True
        if self._output.is_flushed:
            self.transport.close()
        self.server.loop.call_later(CLOSE_TIMEOUT_SECONDS, self.transport.abort)

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()
