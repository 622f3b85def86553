"""Limits of connections: a real Apache Kafka and our node do the same with those beyond."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest

from kafkawire import encode_frame
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from tests.interop.implementations import until

from ...real.broker import running
from ...real.java import Installation
from ...real.wire import RESPONSE_SECONDS, Wire
from .test_quotas_beside_kafka import alter

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
BETWEEN: Final = "CLIENTS"
"""The listener between brokers, by its name in both."""
OTHER: Final = "SASL"
MOST_OF_OTHER: Final = 4
MAX: Final = "max.connections"
REQUEST: Final = encode_frame(ApiVersionsRequest(), 0, 1, client_id="limited")
RATE: Final = "max.connection.creation.rate"
PER_SECOND: Final = 2
MANY: Final = 24
"""Connections of which 20 are within the rate: those of 10 seconds."""
DELAYED_S: Final = 1.0
"""Less than the others are delayed by: half a second each."""
SETTINGS: Final = {
    "listener.name.sasl.max.connections": str(MOST_OF_OTHER),
    f"listener.name.clients.{RATE}": str(PER_SECOND),
}
OURS: Final = {
    "listeners": f"{BETWEEN}://:0,{OTHER}://:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": BETWEEN,
}
REAL: Final = {"num.network.threads": "1"}
"""Each thread closes the least recently used connection of its own."""
WAITS_S: Final = 1.5
"""A response that does not come in this time waits for something."""


class Ports(NamedTuple):
    """The ports of two listeners of one broker. between: of that between brokers."""

    between: int
    other: int


@pytest.fixture(scope="module")
def both(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ports, Ports]]:
    """The ports of the real broker and of a node of ours."""
    with (
        running(installation, tmp_path_factory.mktemp("limited-kafka"), SETTINGS | REAL) as real,
        ClusterThread(ServerConfig(settings=SETTINGS | OURS)) as ours,
    ):
        yield (
            Ports(real.port, real.sasl_port),
            Ports(ours.ports(BETWEEN)[1], ours.ports(OTHER)[1]),
        )


def connected(port: int, stack: ExitStack, number: int) -> list[Wire]:
    """Open connections, and send a request on each."""
    wires = [stack.enter_context(Wire(port)) for _ in range(number)]
    for each in wires:
        each.socket.sendall(REQUEST)
    return wires


def outcome(wire: Wire, seconds: float = RESPONSE_SECONDS) -> str:
    """Return what comes in this time: a response, the end of the connection, or nothing."""
    wire.socket.settimeout(seconds)
    try:
        return "served" if wire.socket.recv(1 << 16) else "closed"
    except TimeoutError:
        return "waits"
    except ConnectionResetError:
        return "closed"


def outcomes(*wires: Wire) -> list[str]:
    """Return what comes to each; the last has no response yet."""
    return [*map(outcome, wires[:-1]), outcome(wires[-1], WAITS_S)]


def is_limited(port: int, number: int) -> bool:
    """Whether so many connections are served, and one more is not."""
    with ExitStack() as stack:
        return outcomes(*connected(port, stack, number + 1)) == ["served"] * number + ["waits"]


def limited_story(ports: Ports) -> list[object]:
    """Connections beyond `max.connections`, to both listeners."""
    results: list[object] = []
    with ExitStack() as stack:
        operator = stack.enter_context(Wire(ports.between))
        alter(operator, {MAX: "3"})
        until(lambda: is_limited(ports.other, 2))
        first, second, third, fourth = connected(ports.other, stack, 4)
        results += outcome(first), outcome(second), outcomes(third), outcomes(fourth)
        second.socket.close()
        results += outcome(third), outcomes(fourth)
        first.socket.close()
        results.append(outcome(fourth))
        [between] = connected(ports.between, stack, 1)
        results += outcome(between), outcome(third), outcomes(fourth)
        alter(operator, {MAX: "2"})
        results.append(outcome(fourth))
        alter(operator, {MAX: None})
        until(lambda: is_limited(ports.other, MOST_OF_OTHER))
    return results


def test_connections_beyond_a_limit_wait(both: tuple[Ports, Ports]) -> None:
    """The listener between brokers takes the slot of the least recently used connection."""
    real, ours = map(limited_story, both)
    assert ours == real
    assert real == [
        *("served", "served", ["waits"], ["waits"]),
        *("served", ["waits"]),
        "served",
        *("served", "closed", ["waits"]),
        "closed",
    ]


def delayed(port: int) -> bool:
    """Open connections, one after the other, which are all served; return whether some waited."""
    begin = time.monotonic()
    for _ in range(MANY):
        with ExitStack() as stack:
            [wire] = connected(port, stack, 1)
            assert outcome(wire) == "served"
    return time.monotonic() - begin >= DELAYED_S


def test_connections_beyond_the_rate_of_a_listener_are_delayed(both: tuple[Ports, Ports]) -> None:
    assert [delayed(each.between) for each in both] == [True, True]


def test_connections_beyond_the_rate_of_the_broker_are_delayed(both: tuple[Ports, Ports]) -> None:
    for each in both:
        with Wire(each.between) as operator:
            alter(operator, {RATE: str(PER_SECOND)})
            until(lambda each=each: delayed(each.other))  # type: ignore[misc]
            alter(operator, {RATE: None})
