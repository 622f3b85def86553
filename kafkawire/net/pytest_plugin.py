"""A pytest plugin with the fixtures `kafka_broker` and `kafka_cluster`, in the test process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

`kafka_broker` is a cluster in memory, up in milliseconds; the nodes of `kafka_cluster` are also
controllers, and elect the active one. The markers `@pytest.mark.kafka(brokers=3)` and
`@pytest.mark.kafka_cluster(brokers=3)` configure them, with the fields of `ServerConfig`. Tests
that do not use the fixtures import nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from .nodes.cluster_thread import ClusterThread
    from .server_config import ServerConfig
    from .server_thread import ServerThread

MARKERS: Final = {"kafka": "kafka_broker", "kafka_cluster": "kafka_cluster"}
"""Marker -> the fixture that it configures."""
BROKERS: Final = {"kafka": 1, "kafka_cluster": 3}
"""Marker -> how many brokers there are unless it says so."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker, name in MARKERS.items():
        text = f"{marker}(**config): configuration of `{name}`, the fields of ServerConfig"
        config.addinivalue_line("markers", text)


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
        from .server_thread import ServerThread

    with ServerThread(_config(request, "kafka")) as cluster:
        yield cluster


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterThread]:
    """Nodes that vote, on loopback: as `kafka_broker`, and the controller fails, too."""
    with uncollected():
        from .nodes.cluster_thread import ClusterThread

    with ClusterThread(_config(request, "kafka_cluster")) as cluster:
        yield cluster


def _config(request: pytest.FixtureRequest, marker: str) -> ServerConfig:
    """Return the configuration of markers; the innermost has precedence.

    Fails the test for wrong arguments.
    """
    from .server_config import QUICK, read_marker  # imported only by tests that use a fixture

    arguments: dict[str, Any] = {"brokers": BROKERS[marker]}
    for each in reversed(list(request.node.iter_markers(marker))):
        if each.args:
            pytest.fail(f"the marker {marker} takes arguments by name only", pytrace=False)
        arguments |= each.kwargs
    settings = arguments.get("settings", {})
    if isinstance(settings, dict):
        arguments["settings"] = QUICK | settings
    try:
        return read_marker(marker, arguments)
    except ValueError as error:
        pytest.fail(str(error), pytrace=False)
