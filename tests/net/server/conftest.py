"""Clients of other implementations behind one interface: produce, consume in a group, commit.

A client gets its configuration by Kafka's names where it has them; waits are bounded by what
comes, not by sleeping; what a client leaves open is collected before the next test begins.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator

import pytest

from kafkawire.net.loop_thread import THREAD_NAME
from tests.interop.implementations import IMPLEMENTATIONS, Implementation

ENDING_SECONDS = 20.0
LEFT_OPEN = "ignore::pytest.PytestUnraisableExceptionWarning"
"""aiokafka and kafka-python leave sockets to the garbage collector when a broker is gone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/net/server/"):
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Collect what clients leave open once nothing of their test holds it: neither its fixtures nor
    its log, where kafka-python writes the errors of connections that it does not close.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True)
def nothing_left_to_others() -> Iterator[None]:
    """Wait for the threads of clients: they hold what is left open."""
    before = set(threading.enumerate())
    yield
    for each in set(threading.enumerate()) - before:
        if each.name != THREAD_NAME:  # of a cluster that many tests share
            each.join(ENDING_SECONDS)


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda make: make.name)
def make(request: pytest.FixtureRequest) -> Implementation:
    """A client implementation."""
    found: Implementation = request.param
    return found
