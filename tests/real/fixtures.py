"""Fixtures with Apache Kafka, for all tests: jars and running brokers.

Law: a test that only adds topics and groups with its own names uses the shared `kafka`; a test that
looks at everything uses `own_kafka`. Each JVM slows a small machine down.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .broker import Broker, running
from .java import Installation, install


@pytest.fixture(scope="session")
def installation() -> Installation:
    """Java and the jars of Apache Kafka."""
    return install()


@pytest.fixture(scope="session")
def kafka(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker, up until the last test has run."""
    with running(installation, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def own_kafka(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real broker that no other module sees."""
    with running(installation, tmp_path_factory.mktemp("own-kafka")) as broker:
        yield broker
