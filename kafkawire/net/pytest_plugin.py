"""A pytest plugin: the fixture `kafka_broker`, a cluster in the test's own process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

Law: a test without the fixture pays nothing: nothing is imported before. A marker configures it:
`@pytest.mark.kafka(brokers=3, topics={"orders": 6}, settings={...})`, with the arguments of
`kafkawire.net.server.ServerConfig`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .server_thread import ServerThread

QUICK = {"group.initial.rebalance.delay.ms": "0"}
"""Default settings of a broker in a test: no initial rebalance delay."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "kafka(**config): configures `kafka_broker`, as ServerConfig"
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the cyclic GC for imports: the modules stay, and GC takes a tenth of the time."""
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

    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka"))):
        given |= marker.kwargs
    given["settings"] = QUICK | given.get("settings", {})
    with ServerThread(ServerConfig(**given)) as server:
        yield server
