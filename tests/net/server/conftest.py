"""Clients of other makes, on one footing: produce, consume in a group, commit.

Law: a client is told a configuration by Kafka's names where it has them; waits are bounded by what
comes, not by sleeping.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.net.server_thread import THREAD_NAME
from tests.interop.makes import MAKES, Make

HERE = Path(__file__).parent
ENDING_SECONDS = 20.0
LEFT_OPEN = "ignore::pytest.PytestUnraisableExceptionWarning"
"""aiokafka and kafka-python leave sockets to the garbage collector when a broker is gone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))


@pytest.fixture(autouse=True)
def nothing_left_to_others() -> Iterator[None]:
    """Let what clients leave open be collected in the test that left it: their threads hold it."""
    before = set(threading.enumerate())
    yield
    for each in set(threading.enumerate()) - before:
        if each.name != THREAD_NAME:  # of a cluster that many tests share
            each.join(ENDING_SECONDS)
    gc.collect()


@pytest.fixture(params=MAKES, ids=lambda make: make.name)
def make(request: pytest.FixtureRequest) -> Make:
    """A make of client."""
    found: Make = request.param
    return found
