"""The topics that a server is configured with are as its settings say."""

from __future__ import annotations

import asyncio

import pytest

from kafkawire.net.partitions import NewTopic
from kafkawire.net.server import Server
from kafkawire.net.server_config import ServerConfig

PARTITIONS = 6
MANY = 100


@pytest.mark.parametrize(("configured", "replicas"), [("1", 1), ("2", 2), ("3", 3), ("5", 3)])
def test_topics_have_the_default_replication_factor(configured: str, replicas: int) -> None:
    config = ServerConfig(
        brokers=3,
        topics={"orders": PARTITIONS},
        settings={"default.replication.factor": configured},
    )

    async def factors() -> list[int]:
        async with Server(config) as server:
            await server.topics.create(NewTopic("more", PARTITIONS, replicas, {}))
            partitions = server.machine.image().partitions()
            return [len(each.replicas) for _, _, each in partitions]

    assert asyncio.run(factors()) == [replicas] * 2 * PARTITIONS


@pytest.mark.parametrize("brokers", [1, 2])
def test_all_partitions_are_led_once_the_server_listens(brokers: int) -> None:
    """However many there are: brokers open logs of 16 at a time."""

    async def led() -> list[bool]:
        async with Server(ServerConfig(brokers=brokers, topics={"orders": MANY})) as server:
            return [
                partition.is_leader
                for front in server.machine.fronts.values()
                for partition in front.machines.node.partitions.values()
            ]

    assert asyncio.run(led()) == [True] * MANY


@pytest.mark.parametrize("stopped", [1, 2, 3])
def test_replicated_topics_have_leaders_when_a_broker_has_stopped(stopped: int) -> None:
    config = ServerConfig(
        brokers=3, topics={"orders": PARTITIONS}, settings={"default.replication.factor": "2"}
    )

    async def leaders() -> set[int]:
        async with Server(config) as server:
            await server.stop_broker(stopped)
            return {each.leader for _, _, each in server.machine.image().partitions()}

    assert asyncio.run(leaders()) == {1, 2, 3} - {stopped}
