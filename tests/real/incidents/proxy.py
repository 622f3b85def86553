"""A TCP proxy on loopback that fails as devices on the way do: it cuts, damages or holds back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from tests.real.wire import HOST

CHUNK: Final = 1 << 16
LARGE: Final = 100
"""Bytes; a request that is longer has records."""


class Proxy:
    """Forwards connections from a port to another one.

    cutting: the next bytes from the broker are dropped, and all connections closed. damaging: the
    a bit in the middle of requests with records is flipped. silent:
    nothing is forwarded.
    """

    def __init__(self, port: int, target: int) -> None:
        self.cutting = threading.Event()
        self.damaging = threading.Event()
        self.silent = threading.Event()
        self._target = target
        self._server = socket.create_server((HOST, port))
        self._sockets: list[socket.socket] = []

    def serve(self) -> None:
        """Accept connections until the proxy is closed."""
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                if self.silent.is_set():
                    self._sockets.append(near)
                    continue
                far = socket.create_connection((HOST, self._target))
                self._sockets += near, far
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(
                        target=self._forward, args=(source, sink, sink is near)
                    ).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_response: bool) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if self.silent.is_set():
                    continue
                if is_response and self.cutting.is_set():
                    self.cutting.clear()
                    break
                if not is_response and self.damaging.is_set() and len(data) > LARGE:
                    middle = len(data) // 2
                    data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the port and all connections."""
        for one in (self._server, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def proxied(port: int, target: int) -> Iterator[Proxy]:
    """Run a proxy in front of a port."""
    proxy = Proxy(port, target)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
