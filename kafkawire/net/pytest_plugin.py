"""A pytest plugin with the fixtures `kafka_broker` and `kafka_cluster`, in the test process.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

`kafka_broker` is a cluster in memory, up in milliseconds; the nodes of `kafka_cluster` are also
controllers, and elect the active one. The markers `@pytest.mark.kafka(brokers=3)` and
`@pytest.mark.kafka_cluster(brokers=3)` configure them, with the fields of `ServerConfig`. Tests
that do not use the fixtures import nothing. The report of a failed test has a section with the
reasons why brokers closed connections, which clients often do not show. A fault that no request of
a passed test has met is a warning.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from .fixture import ClusterFixture
    from .nodes.cluster_thread import ClusterThread
    from .server_config import ServerConfig
    from .server_thread import ServerThread

MARKERS: Final = {"kafka": "kafka_broker", "kafka_cluster": "kafka_cluster"}
"""Marker -> the fixture that it configures."""
BROKERS: Final = {"kafka": 1, "kafka_cluster": 3}
"""Marker -> how many brokers there are unless it says so."""
USED: Final = pytest.StashKey[bool]()
"""Whether a test has used a fixture."""
CLUSTERS: Final = pytest.StashKey[dict[str, "ClusterFixture"]]()
"""Fixture -> the cluster of a test."""
PASSED: Final = pytest.StashKey[bool]()
"""Whether the call of a test has passed."""
MOST_LINES: Final = 10
MOST_CHARACTERS: Final = 300
"""Of the section of a report, and of each of its lines."""


class UnusedFaultWarning(pytest.PytestWarning):
    """A fault of a passed test that no request has met, so that the test has not tried it."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker, name in MARKERS.items():
        text = f"{marker}(**config): configuration of `{name}`, the fields of ServerConfig"
        config.addinivalue_line("markers", text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test with a marker of its own that has used no fixture, by its name either."""
    result = yield
    for each in item.own_markers:
        if each.name in MARKERS and USED not in item.stash:
            reason = f"the marker {each.name} configures `{MARKERS[each.name]}`"
            pytest.fail(f"{reason}, which this test does not use", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a section to the report of a failed test: why brokers closed connections."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    if report.failed and report.when != "teardown":  # which closes the others
        for name, cluster in item.stash.get(CLUSTERS, {}).items():
            lines = _closed(cluster)
            if lines:
                report.sections.append((f"{name}: connections that were closed", "\n".join(lines)))
    return report


def _closed(cluster: ClusterFixture) -> list[str]:
    """Count the connections that brokers closed, by reason; in the order of the first ones."""
    from ..display import plural, printable

    reasons = Counter(printable(close.reason)[:MOST_CHARACTERS] for close in cluster.closed)
    lines = [f"{plural(count, 'connection')}: {reason}" for reason, count in reasons.items()]
    if len(lines) <= MOST_LINES:
        return lines
    shown = lines[: MOST_LINES - 1]
    return [*shown, f"... and {len(lines) - len(shown)} more reasons (`.closed` has all)"]


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
        request.node.stash.setdefault(CLUSTERS, {})["kafka_broker"] = cluster
        yield cluster
    _warn_of_unused_faults(request.node, cluster)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterThread]:
    """Nodes that vote, on loopback: as `kafka_broker`, and the controller fails, too."""
    with uncollected():
        from .nodes.cluster_thread import ClusterThread

    with ClusterThread(_config(request, "kafka_cluster")) as cluster:
        request.node.stash.setdefault(CLUSTERS, {})["kafka_cluster"] = cluster
        yield cluster
    _warn_of_unused_faults(request.node, cluster)


def _warn_of_unused_faults(item: pytest.Item, cluster: ClusterFixture) -> None:
    if item.stash.get(PASSED, False):
        for fault in cluster.unused_faults():
            item.warn(UnusedFaultWarning(f"no request met {fault!r}"))


def _config(request: pytest.FixtureRequest, marker: str) -> ServerConfig:
    """Return the configuration of markers; the innermost has precedence.

    Fails the test for wrong arguments, and for the marker of the other fixture alone.
    """
    from .server_config import read_marker  # imported only by tests that use a fixture

    try:
        return read_marker(marker, _arguments(request, marker))
    except ValueError as error:
        reason = str(error)
    pytest.fail(reason, pytrace=False)  # here, so that the error is not its context


def _arguments(request: pytest.FixtureRequest, marker: str) -> dict[str, Any]:
    """Return the arguments of all markers of a test. ValueError for markers that are wrong."""
    from .server_config import QUICK

    request.node.stash[USED] = True
    arguments: dict[str, Any] = {"brokers": BROKERS[marker]}
    markers = list(request.node.iter_markers(marker))
    for each in reversed(markers):
        if each.args:
            raise ValueError(f"the marker {marker} takes arguments by name only")
        arguments |= each.kwargs
    for other, fixture in MARKERS.items():
        is_alone = not markers and request.node.get_closest_marker(other) is not None
        if is_alone and fixture not in request.fixturenames:
            reason = f"the marker {other} configures `{fixture}`"
            raise ValueError(f"{reason}; that of `{MARKERS[marker]}` is {marker}")
    settings = arguments.get("settings", {})
    if isinstance(settings, dict):
        arguments["settings"] = QUICK | settings
    return arguments
