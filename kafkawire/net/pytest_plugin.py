"""A pytest plugin with the fixture `kafka_broker`: a cluster in the test process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

Law: tests that do not use the fixture import nothing. It is configured by the marker
`@pytest.mark.kafka(brokers=3, topics={"orders": 6}, settings={...})`, whose arguments are
those of `kafkawire.net.server.ServerConfig`.
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
"""Default settings of a broker in tests: no initial rebalance delay."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "kafka(**config): configuration of `kafka_broker`, as for ServerConfig"
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

    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka"))):
        given |= marker.kwargs
    given["settings"] = QUICK | given.get("settings", {})
    with ServerThread(ServerConfig(**given)) as server:
        yield server
