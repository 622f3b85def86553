"""The asyncio protocol of one client connection, with TLS.

Unread responses are bounded: the machine is notified when they are flushed. TLS is a layer in here,
so the machine knows a connection before its handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ...broker import Connected, Disconnected, Drained, Endpoint, Received, Unreadable
from ...broker.events import Authenticated
from .output import Output
from .tls import TlsSession

if TYPE_CHECKING:
    from .shell import Observers
    from .tls_stores import ListenerTls

CLOSE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds for a client to read the last responses before its connection is aborted."""
ClientEvent = Connected | Received | Drained | Disconnected | Unreadable | Authenticated


Address = tuple[str, int]


class Listener(NamedTuple):
    """Where a broker listens. name: where it has several. tls: of its connections, None without.

    shown: host and port that clients are shown, None for those of the endpoint.
    """

    endpoint: Endpoint
    name: str = ""
    tls: ListenerTls | None = None
    shown: tuple[str, int] | None = None

    @property
    def advertised(self) -> Endpoint:
        """Where clients reach the broker."""
        if self.shown is None:
            return self.endpoint
        host, port = self.shown
        return self.endpoint._replace(host=host, port=port)


class ConnectionOwner(Protocol):
    """What a connection needs of its shell."""

    observers: Observers
    loop: asyncio.AbstractEventLoop

    def handle(self, event: ClientEvent) -> None: ...
    def opened(self, connection: ServerConnection) -> int: ...
    def is_open(self, number: int) -> bool: ...
    def lost(self, number: int) -> None: ...


class ServerConnection(asyncio.Protocol):
    """One client connection. peer: the address of the client.

    slot: set unless the connection waits for one, and no other is to be accepted before it.
    """

    def __init__(self, shell: ConnectionOwner, listener: Listener, peer: Address) -> None:
        self.shell = shell
        self.listener = listener
        self.peer = peer
        self.number = 0
        self.slot = asyncio.Event()
        self.slot.set()
        self._recording = shell.observers.recording
        self._closing = False
        self._drain_awaited = False
        self._stream: int | None = None
        self._tls = None if listener.tls is None else TlsSession(listener.tls.context)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._output = Output(transport)
        # asyncio sets it too, but not if the listener's protocol number is 0: small responses
        # would wait for the client's delayed ACK, 40 ms
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.shell.opened(self)
        node_id, host, port, _ = self.listener.endpoint
        if self._recording is not None:
            self._stream = self._recording.open(self.peer, (host, port))
        self.shell.handle(Connected(self.number, node_id, self.peer[0], self.listener.name))

    def data_received(self, data: bytes) -> None:
        if self._tls is not None:
            try:
                data = self._tls.receive(data)
            except ssl.SSLError as error:
                self._send_pending()  # an alert
                self.shell.handle(Unreadable(self.number, f"TLS: {error.reason or error}"))
                return
            self._send_pending()
            subject = self._tls.take_subject()
            if subject is not None:
                self.shell.handle(Authenticated(self.number, subject))
            if self._tls.is_closed:
                self._close_tls()
            if not data:
                return
        if self._recording is not None and self._stream is not None:
            self._recording.received(self._stream, data)
        self.shell.handle(Received(self.number, data))

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
            self.shell.handle(Drained(self.number))

    def eof_received(self) -> bool:
        """Close when the responses are sent; True keeps the transport open until then."""
        self._closing = not self._output.is_flushed
        return self._closing

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._output.clear()
        if self._recording is not None and self._stream is not None:
            self._recording.closed(self._stream)
        self.shell.lost(self.number)
        self.slot.set()

    # -- effects of the machine

    def send(self, buffers: list[bytes]) -> None:
        """Send a response frame, in pieces."""
        if self._recording is not None and self._stream is not None:
            self._recording.sent(self._stream, b"".join(buffers))
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
            self.shell.loop.call_soon(self._drained)
        else:
            self._drain_awaited = True

    def _drained(self) -> None:
        if self.shell.is_open(self.number):
            self.shell.handle(Drained(self.number))

    def await_slot(self) -> None:
        """Read nothing, and let others wait behind this connection."""
        self.slot.clear()
        self.pause()

    def take_slot(self) -> None:
        """Read, and let others be accepted."""
        self.slot.set()
        self.resume()

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
        self.shell.loop.call_later(CLOSE_TIMEOUT_SECONDS, self.transport.abort)

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()
