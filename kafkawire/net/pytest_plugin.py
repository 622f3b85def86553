"""A pytest plugin: the fixture `kafka_broker`, a cluster that runs in the test's own process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

Law: a test that does not ask for it pays nothing: nothing is imported before. What it is can be set
by a marker: `@pytest.mark.kafka(brokers=3, topics={"orders": 6}, settings={...})`, whose arguments
are those of `kafkawire.net.server.ServerConfig`.
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
"""Settings of a broker in a test, where nothing else is said: its groups do not wait."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the marker be known."""
    config.addinivalue_line(
        "markers", "kafka(**config): what `kafka_broker` serves, as for ServerConfig"
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Import inside: all of it stays, and to look for garbage there takes a tenth of the time."""
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
