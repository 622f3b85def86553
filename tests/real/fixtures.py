"""The fixtures that need Apache Kafka, for all tests: jars, and brokers that run.

Law: who only adds topics and groups of names of its own shares `kafka`; who looks at all there is
takes `own_kafka`. A JVM more for each folder is what slows a small machine down.
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
