"""A stopping server closes all sockets, whenever clients connect."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server import Server, ServerConfig
from kafkawire.net.server_thread import ServerThread

pytestmark = pytest.mark.timeout(120)
CERTIFICATE = Path(__file__).with_name("localhost.pem")


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Collect what was left before; then what is left here, and fail for it."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(each.message) for each in caught] == []


def connected(port: int) -> socket.socket:
    """Connect: the system does so, whether the server has taken it yet or not."""
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def client(server: Server) -> socket.socket:
    """Connect to the first broker of a server."""
    return connected(server.endpoints[0].port)


def ended(there: socket.socket) -> bool:
    """Whether the server has closed the connection, or never accepted it."""
    try:
        return there.recv(1) == b""
    except ConnectionResetError:
        return True


ENDS: dict[str, Callable[[Server], Coroutine[Any, Any, None]]] = {
    "closed": Server.close,
    "stopped": lambda server: server.stop_broker(1),
    "killed": lambda server: server.kill_broker(1),
}
"""How a broker comes to its end."""


@pytest.mark.parametrize("iterations", range(4))
@pytest.mark.parametrize("how", ENDS)
def test_a_client_that_comes_as_it_ends(iterations: int, how: str) -> None:
    """After so many loop iterations: not accepted yet, being accepted, connected."""

    async def scenario() -> None:
        server = Server()
        await server.start()
        ending: list[asyncio.Task[None]] = []

        def end() -> None:
            ending.append(asyncio.ensure_future(ENDS[how](server)))

        with client(server) as there:
            for _ in range(iterations):
                await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(end)
            while not ending:
                await asyncio.sleep(0)
            await ending[0]
            if how == "stopped":
                await server.close()
            assert not server.connections
            assert ended(there)
            if how == "killed":
                await server.close()

    with nothing_left_open():
        asyncio.run(scenario())


@pytest.mark.parametrize("kind", [ServerThread, ClusterThread])
def test_a_port_that_is_taken_leaves_nothing_open(
    kind: type[ServerThread] | type[ClusterThread],
) -> None:
    before = threading.enumerate()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = ServerConfig(brokers=2, ports=(0, taken.getsockname()[1]))
        with nothing_left_open(), pytest.raises(OSError, match="in use"), kind(config):
            pass
    assert set(threading.enumerate()) <= set(before)


@pytest.mark.parametrize("kind", [ServerThread, ClusterThread])
def test_a_host_that_does_not_exist_is_named(
    kind: type[ServerThread] | type[ClusterThread],
) -> None:
    config = ServerConfig(brokers=1, host="no-such-host.invalid")
    with nothing_left_open(), pytest.raises(OSError) as raised, kind(config):
        pass
    assert raised.value.filename == "no-such-host.invalid:0"
    with pytest.raises(socket.gaierror) as unknown:
        socket.getaddrinfo("no-such-host.invalid", 0)
    assert raised.value.strerror == unknown.value.strerror


def test_a_client_that_never_shakes_hands() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with nothing_left_open(), ServerThread(ServerConfig(tls=context)) as it, client(it.server):
        for _ in range(5):  # turns of its loop
            it.advance(0)
