"""How a socket of a client ends."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

import pytest

from kafkawire.client.network.transport import Connect, ConnectionMade, ShellEvent
from kafkawire.net.sockets.socket import Socket

WRITTEN = bytes(16 << 20)  # more than the buffers of both sockets
BOUND_S = 60.0


class Peer:
    """A broker that reads nothing until the client closes, and then writes before it reads.

    received: how many bytes it received; reset: whether the connection was reset.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.closing = threading.Event()
        self.received = 0
        self.reset = False
        self.thread = threading.Thread(target=self._serve, args=(listening,))
        self.thread.start()

    def _serve(self, listening: socket.socket) -> None:
        connected, _ = listening.accept()
        with connected:
            connected.settimeout(BOUND_S)
            self.closing.wait(BOUND_S)
            connected.sendall(b"a response")
            try:
                while data := connected.recv(1 << 20):
                    self.received += len(data)
            except ConnectionResetError:
                self.reset = True


class Owner:
    """In the place of a driver."""

    def __init__(self, on_made: Callable[[], None]) -> None:
        self.on_made = on_made

    def receive(self, event: ShellEvent) -> None:
        if isinstance(event, ConnectionMade):
            self.on_made()

    def received(self, connection: int, data: bytes) -> None:
        raise AssertionError(f"{len(data)} bytes after the end of connection {connection}")

    def forget(self, socket: Socket) -> None:
        pass


@pytest.mark.parametrize("after_peer", [True, False])
def test_a_peer_that_responds_late_loses_nothing_if_it_closes_first(after_peer: bool) -> None:
    """Without that, the response resets the connection, and what was not sent yet is lost."""

    async def write_and_close(port: int, peer: Peer) -> None:
        def write() -> None:
            made.write([WRITTEN])
            made.close(after_peer=after_peer)
            peer.closing.set()

        made = Socket(Owner(write), Connect(1, 7, "127.0.0.1", port))
        await asyncio.wait_for(made.closed, BOUND_S)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = Peer(listening)
        asyncio.run(write_and_close(listening.getsockname()[1], peer))
        peer.thread.join(BOUND_S)
    if after_peer:
        assert (peer.received, peer.reset) == (len(WRITTEN), False)
    else:
        assert peer.reset
