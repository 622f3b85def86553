"""The fixtures of these tests: jars, a broker that runs, and the files of one that has run."""

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
