"""Sockets: a pipelining client does not delay others, and TLS handshakes time out."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import kafkawire
from kafkawire.broker import Received
from kafkawire.broker.bounds import SLICE_REQUESTS
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.brokers.shell import Observers, Shell
from kafkawire.net.brokers.transport import ClientEvent
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...real.wire import HOST, Wire

pytestmark = pytest.mark.timeout(600)
CERTIFICATE = Path(__file__).with_name("localhost.pem")
HELLO = bytes.fromhex("16030101000100")
"""The beginning of a ClientHello."""
ONE = MetadataRequest(topics=[])


def port_of(server: ServerThread) -> int:
    return int(server.bootstrap.rpartition(":")[2])


def frame(number: int, client_id: str) -> bytes:
    return kafkawire.encode_frame(ONE, 9, number, client_id=client_id)


def test_a_client_that_pipelines_does_not_keep_others_waiting(kafka_broker: ServerThread) -> None:
    """Both have sent when the server's loop comes to look at its sockets, the pipelining first."""
    many = 2000
    port = port_of(kafka_broker)
    with Wire(port) as hog, Wire(port) as other:
        for wire in (hog, other):
            wire.exchange(ONE, 9, MetadataResponse)
        before = len(kafka_broker.requests)
        both_sent = threading.Event()
        kafka_broker._thread.loop.call_soon_threadsafe(both_sent.wait, 100.0)
        hog.socket.sendall(b"".join(frame(number, "hog") for number in range(many)))
        other.socket.sendall(frame(0, "other"))
        both_sent.set()
        for number in range(many):
            size = int.from_bytes(hog._read(4), "big")
            assert hog._read(size)[:4] == number.to_bytes(4, "big"), "its responses are in order"
    order = [each.request.client_id for each in kafka_broker.requests[before:]]
    assert order.count("hog") == many
    assert order.index("other") <= 2 * SLICE_REQUESTS


class SlowMachine:
    """A machine that takes 30 ms for each event, and has a deadline at once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.clock = 0.0

    def time(self) -> float:
        return self.clock

    def handle(self, _event: ClientEvent) -> list[Any]:
        return self._work("event")

    def next_deadline(self) -> float | None:
        return None if "deadline" in self.log else 0.0

    def advance(self, _now: float) -> list[Any]:
        return self._work("deadline")

    def _work(self, name: str) -> list[Any]:
        self.clock += 0.03
        self.log.append(name)
        return []


class SlowShell(Shell):
    """A shell whose clock is that of its machine."""

    machine: SlowMachine

    def __init__(self) -> None:
        super().__init__(Observers())
        self.machine = SlowMachine()
        self.loop = cast("asyncio.AbstractEventLoop", self.machine)

    async def start(self) -> None:
        """Listen nowhere."""

    async def close(self) -> None:
        """Have nothing to close."""

    def handle(self, event: ClientEvent) -> None:
        self.run(lambda: self.machine.handle(event))

    def carry_out(self, effect: Any) -> None:
        raise AssertionError(effect)


def test_deadlines_are_handled_between_the_sockets_that_are_readable_at_once() -> None:
    async def receive_of_all() -> list[str]:
        shell = SlowShell()
        for number in range(4):
            shell.handle(Received(number, b""))
        return shell.machine.log

    assert asyncio.run(receive_of_all()) == ["event", "event", "deadline", "event", "event"]


@pytest.fixture
def secured() -> Iterator[ServerThread]:
    """A server with TLS and an idle timeout of a minute."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    settings = {"connections.max.idle.ms": "60000", "max.connections.per.ip": "2"}
    with ServerThread(ServerConfig(tls=context, settings=settings)) as server:
        yield server


def connected(server: ServerThread, count: int = 1) -> list[socket.socket]:
    """Connect, and wait until the server knows."""
    found = [socket.create_connection((HOST, port_of(server)), timeout=100) for _ in range(count)]
    until(lambda: len(server.server.connections) == count)
    return found


def closes(client: socket.socket) -> bool:
    """Whether the server closes a connection, whatever it sends before."""
    try:
        while client.recv(1000):
            pass
    except ConnectionResetError:
        pass
    finally:
        client.close()
    return True


@pytest.mark.parametrize("sent", [b"", HELLO])
def test_a_handshake_that_does_not_go_on_is_given_up(secured: ServerThread, sent: bytes) -> None:
    [client] = connected(secured)
    client.sendall(sent)
    secured.advance(59)
    assert not secured.closed
    secured.advance(2)
    assert closes(client)
    [closed] = secured.closed
    assert closed.reason == "no request within connections.max.idle.ms"
    until(lambda: not secured.server.connections)


def test_what_is_not_tls_is_closed_with_a_reason(secured: ServerThread) -> None:
    [client] = connected(secured)
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert closes(client)
    until(lambda: len(secured.closed) == 1)
    assert secured.closed[0].reason.startswith("TLS: ")


def test_connections_count_before_their_handshake(secured: ServerThread) -> None:
    clients = connected(secured, 2)
    with socket.create_connection((HOST, port_of(secured)), timeout=100) as third:
        assert closes(third)
    assert "max.connections.per.ip is 2" in secured.closed[0].reason
    for client in clients:
        client.close()


def test_large_requests_and_responses_pass_through_tls(secured: ServerThread) -> None:
    secured.create_topic("t", 5000)
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    context.check_hostname = False
    [plain] = connected(secured)
    with context.wrap_socket(plain) as client:
        whole = MetadataRequest(topics=None)
        with client.makefile("rb") as file:
            for number in range(20):
                request = kafkawire.encode_frame(whole, 9, number, client_id="c" * 30_000)
                client.sendall(request * 5)
                for _ in range(5):
                    size = int.from_bytes(file.read(4), "big")
                    assert size > 100_000
                    assert file.read(size)[:4] == number.to_bytes(4, "big")
    until(lambda: not secured.server.connections)
    assert not secured.closed
