"""Fixtures: the clusters and clients of the table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from kafkawire.client.failures import ClientError
from kafkawire.net.admin import LATEST, Admin, GroupInfo
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.net.server.conftest import LEFT_OPEN, nothing_left_to_others, pytest_runtest_teardown
from tests.real.broker import MECHANISMS, PASSWORD, USER
from tests.real.java import Installation

from .implementations import IMPLEMENTATIONS, Implementation
from .implementations.java import Java, JavaTools, Jvm
from .implementations.kafkajs import KafkaJs
from .implementations.ours import Ours
from .matrix import KAFKA
from .node import Node, install

__all__ = ["nothing_left_to_others", "pytest_runtest_teardown"]
NUMBERS = count()


class TargetCluster:
    """A cluster, with our admin client."""

    def __init__(
        self, bootstrap: str, sasl_bootstrap: str, secured: ServerThread | None = None
    ) -> None:
        self.bootstrap = bootstrap
        self.sasl_bootstrap = sasl_bootstrap
        self._secured = secured

    def secret_topic(self) -> str:
        """Create a topic for clients of `sasl_bootstrap`."""
        if self._secured is None:
            return self.topic(1)
        name = f"secret-{next(NUMBERS)}"
        self._secured.create_topic(name, 1, 1)
        return name

    def topic(self, partitions: int) -> str:
        """Create a topic, and wait until its partitions have leaders."""
        name = f"interop-{next(NUMBERS)}"

        async def make() -> None:
            async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
                await admin.create_topic(name, partitions=partitions)
                await admin.list_offsets({(name, each): LATEST for each in range(partitions)})

        asyncio.run(make())
        return name

    def group(self, group_id: str) -> GroupInfo | None:
        """Describe a group; None if that fails."""

        async def describe() -> GroupInfo:
            async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
                return await admin.describe_group(group_id)

        try:
            return asyncio.run(describe())
        except ClientError:
            return None

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a group."""

        async def describe() -> dict[tuple[str, int], int]:
            async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
                found = await admin.group_offsets(group_id)
                return {where: each.offset for where, each in found.items()}

        return asyncio.run(describe())


@pytest.fixture(scope="session")
def node() -> Node:
    """Node.js and kafkajs."""
    return install()


@pytest.fixture(scope="session")
def jvm(installation: Installation) -> Iterator[Jvm]:
    """A JVM for all of Java's clients."""
    started = Jvm(installation)
    yield started
    started.close()


@pytest.fixture(scope="session")
def our_cluster() -> Iterator[TargetCluster]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    secured = settings | {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    with (
        ServerThread(ServerConfig(brokers=3, settings=settings)) as plain,
        ServerThread(ServerConfig(settings=secured, passwords={USER: PASSWORD})) as sasl,
    ):
        yield TargetCluster(plain.bootstrap, sasl.bootstrap, sasl)


@pytest.fixture
def target(request: pytest.FixtureRequest, cluster: str) -> TargetCluster:
    """The cluster of a case."""
    if cluster == KAFKA:
        broker = request.getfixturevalue("kafka")
        return TargetCluster(broker.bootstrap, broker.sasl_bootstrap)
    found: TargetCluster = request.getfixturevalue("our_cluster")
    return found


@pytest.fixture
def implementation(request: pytest.FixtureRequest, client: str) -> Implementation:
    """The client of a case."""
    if client == KafkaJs.name:
        return KafkaJs(request.getfixturevalue("node"))
    if client == Java.name:
        return Java(request.getfixturevalue("jvm"))
    if client == JavaTools.name:
        return JavaTools(request.getfixturevalue("installation"))
    return {each.name: each for each in (Ours(), *IMPLEMENTATIONS)}[client]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/interop/"):
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))
