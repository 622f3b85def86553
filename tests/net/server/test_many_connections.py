"""A thousand connections to one broker in one process: each is served, also when half are reset."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread

from ...broker.harness import Harness
from ...broker.work import steps
from ...real.wire import Wire

pytestmark = pytest.mark.timeout(120)
CONNECTIONS: Final = 1_000
SPARE: Final = 200
"""Files that the process has besides."""
FEW: Final = 50
RESET: Final = struct.pack("ii", 1, 0)
"""Of SO_LINGER: the connection is reset."""
REQUEST: Final = MetadataRequest(topics=[])


@pytest.fixture
def connections() -> Iterator[int]:
    """How many connections fit with both ends in this process, whose limit is raised if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CONNECTIONS + SPARE
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    yield min(CONNECTIONS, (max(soft, most) - SPARE) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def exchange(wires: list[Wire]) -> None:
    for wire in wires:
        assert wire.exchange(REQUEST, 9, MetadataResponse).brokers


def test_half_of_a_thousand_connections_are_reset(connections: int) -> None:
    with ServerThread(ServerConfig()) as server, ExitStack() as stack:
        port = server.ports()[1]
        wires = [stack.enter_context(Wire(port)) for _ in range(connections)]
        exchange(wires)
        for wire in wires[::2]:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            wire.socket.close()
        exchange(wires[1::2])
        again = [stack.enter_context(Wire(port)) for _ in wires[::2]]
        exchange(again + wires[1::2])


def test_the_work_of_an_event_does_not_grow_with_the_connections() -> None:
    """Counted in calls and lines, of a request, a new connection and one that closes."""
    counts = []
    for number in (FEW, CONNECTIONS):
        harness = Harness(topics={"t": 1})
        clients = [harness.client() for _ in range(number)]
        for client in clients:
            client.exchange(REQUEST, 9, MetadataResponse)
        first, last = clients[0], clients[-1]
        counts.append(
            (
                steps(lambda last=last: last.exchange(REQUEST, 9, MetadataResponse)),  # type: ignore[misc]
                steps(harness.client),
                steps(first.disconnect),
            )
        )
    assert counts[0] == counts[1]
