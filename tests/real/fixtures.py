"""Fixtures with Apache Kafka, for all tests: jars and running brokers.

A test that only adds topics and groups with its own names uses the shared `kafka`; a test that
looks at everything uses `own_kafka`. Each JVM slows a small machine down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from tests.markers import turn

from .broker import Broker, running
from .class_archive import with_archive
from .java import Installation, install


@pytest.fixture(scope="session")
def installation() -> Installation:
    """Java and the jars of Apache Kafka."""
    return with_archive(install())


class SharedBroker:
    """A broker that starts when a test needs it, and stops after the last test of its group."""

    def __init__(self, installation: Installation, folders: pytest.TempPathFactory) -> None:
        self._installation = installation
        self._folders = folders
        self._running = ExitStack()
        self._broker: Broker | None = None

    def started(self) -> Broker:
        """Return the broker, which runs."""
        if self._broker is None:
            folder = self._folders.mktemp("kafka")
            self._broker = self._running.enter_context(running(self._installation, folder))
        return self._broker

    def stop(self) -> None:
        """Stop it if it runs."""
        self._broker = None
        self._running.close()


SHARED: Final = pytest.StashKey[SharedBroker]()


@pytest.fixture(scope="session")
def shared_broker(
    request: pytest.FixtureRequest,
    installation: Installation,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SharedBroker]:
    """The broker of `kafka`."""
    shared = SharedBroker(installation, tmp_path_factory)
    request.session.stash[SHARED] = shared
    yield shared
    shared.stop()


@pytest.fixture
def kafka(shared_broker: SharedBroker) -> Broker:
    """A real broker that other tests use, too."""
    return shared_broker.started()


@pytest.hookimpl(trylast=True)  # after the fixtures of the test
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the shared broker before tests that do not use it: it takes CPU time when idle."""
    shared = item.session.stash.get(SHARED, None)
    if shared is not None and (nextitem is None or turn(nextitem) != turn(item)):
        shared.stop()


@pytest.fixture(scope="module")
def own_kafka(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real broker that no other module sees."""
    with running(installation, tmp_path_factory.mktemp("own-kafka")) as broker:
        yield broker
