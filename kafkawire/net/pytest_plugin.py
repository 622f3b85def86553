"""A pytest plugin with the fixtures `kafka_broker` and `kafka_cluster`, in the test process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

`kafka_broker` is a cluster in memory that one machine plays, up at once; `kafka_cluster` consists
of nodes that replicate, elect and fail.

Law: tests that do not use the fixture import nothing. It is configured by the marker
`@pytest.mark.kafka(brokers=3, topics={"orders": 6}, settings={...})`, whose arguments are
those of `kafkawire.net.server.ServerConfig`, and the other by
`@pytest.mark.kafka_cluster(nodes=3, directories=1, settings={...})`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .nodes.cluster_thread import ClusterThread
    from .server_thread import ServerThread

QUICK = {"group.initial.rebalance.delay.ms": "0"}
"""Default settings of a broker in tests: no initial rebalance delay."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line(
        "markers", "kafka(**config): configuration of `kafka_broker`, as for ServerConfig"
    )
    config.addinivalue_line(
        "markers",
        "kafka_cluster(nodes, settings, directories): configuration of `kafka_cluster`",
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the cyclic GC for imports: it would find nothing and takes a tenth of their time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """A cluster on loopback: `.bootstrap`, `.requests`, `.fault()`, `.advance()`."""
    with uncollected():
        from .server import ServerConfig
        from .server_thread import ServerThread

    given = _given(request, "kafka")
    given["settings"] = QUICK | given.get("settings", {})
    with ServerThread(ServerConfig(**given)) as server:
        yield server


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterThread]:
    """A cluster of nodes on loopback: `.bootstrap`, `.kill()`, `.isolate()`, `.leader()`."""
    with uncollected():
        from .nodes.cluster_thread import ClusterThread

    with ClusterThread(**_given(request, "kafka_cluster")) as cluster:
        yield cluster


def _given(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """Return the arguments of markers, of the innermost where several have one."""
    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(name))):
        given |= marker.kwargs
    return given
