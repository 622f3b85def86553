"""A real Kafka starts on the data directory of a node of ours, and ours on one of Kafka's.

Topics, configurations, records, committed offsets, the sequence of an idempotent producer and the
kraft.version are the same before and after, and both can write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kafkawire.client.consumer import TopicPartition
from kafkawire.net.admin import Admin
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer

from .broker import NODE_ID, Broker, free_ports
from .java import Installation
from .own_node import serving
from .wire import HOST

pytestmark = pytest.mark.xdist_group("directories")

TOPIC: Final = "orders"
GROUP: Final = "billing"
PARTITIONS: Final = 2
OFFSETS: Final = {(TOPIC, 0): 7, (TOPIC, 1): 9}
CONFIGS: Final = {"retention.ms": "123456789", "cleanup.policy": "compact,delete"}
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
COMPLAINTS: Final = ("ERROR", "orrupt", "Found invalid", "truncating to offset")


class Content(NamedTuple):
    """What a cluster has. kraft_version: as clients see it, 0 if the voters are static."""

    kraft_version: int
    partitions: int
    configs: dict[str, str | None]
    offsets: dict[tuple[str, int], int]
    values: list[list[bytes | None]]


class Directory(NamedTuple):
    """A data directory, and the ports of whoever runs on it."""

    broker: Broker

    @property
    def bootstrap(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @property
    def controllers(self) -> str:
        return f"{NODE_ID}@{HOST}:{self.broker.controller_port}"

    def on_kafka(self, work: Callable[[Directory], Awaitable[Content]]) -> Content:
        """Run a real Kafka on it, for some work."""
        try:
            self.broker.start()
            return asyncio.run(self._timed(work))
        finally:
            self.broker.stop()

    def on_ours(self, work: Callable[[Directory], Awaitable[Content]]) -> Content:
        """Run a node of ours on it, for some work."""
        with serving(self.broker.data, self.broker.port, self.controllers, SETTINGS):
            return asyncio.run(self._timed(work))

    async def _timed(self, work: Callable[[Directory], Awaitable[Content]]) -> Content:
        return await asyncio.wait_for(work(self), 120.0)


@pytest.fixture
def directory(installation: Installation, tmp_path: Path) -> Directory:
    """An empty one."""
    port, sasl_port, controller_port = free_ports(3)
    return Directory(Broker(installation, tmp_path, port, sasl_port, controller_port))


async def filled(directory: Directory) -> Content:
    """Create a topic, change its configuration, produce, commit."""
    async with Admin(directory.bootstrap) as admin:
        given = {"retention.ms": CONFIGS["retention.ms"]}
        await admin.create_topic(TOPIC, partitions=PARTITIONS, configs=given)
        changes = {"cleanup.policy": CONFIGS["cleanup.policy"]}
        await admin.alter_topic_config(TOPIC, changes)
        await admin.alter_group_offsets(GROUP, OFFSETS)
    await produce(directory, "first", "gzip")
    return await content(directory)


async def extended(directory: Directory) -> Content:
    """Produce more, after a look at what there is."""
    found = await content(directory)
    await produce(directory, "second", "zstd")
    return found


async def produce(directory: Directory, name: str, codec: str) -> None:
    async with Producer({**directory.bootstrap, "compression.type": codec}) as producer:
        for number in range(100):
            value = f"{name}-{number}".encode()
            await producer.send(TOPIC, value=value, key=b"k", partition=number % PARTITIONS)


async def content(directory: Directory) -> Content:
    async with Admin(directory.bootstrap) as admin:
        topics = await admin.describe_topics([TOPIC])
        configs = await admin.describe_topic_config(TOPIC)
        offsets = await admin.group_offsets(GROUP)
        versions = await admin.broker_versions(NODE_ID)
    return Content(
        next(each.level for each in versions.features if each.name == "kraft.version"),
        len(topics[TOPIC].partitions),
        {key: configs[key].value for key in CONFIGS},
        {where: committed.offset for where, committed in offsets.items()},
        [await values(directory, partition) for partition in range(PARTITIONS)],
    )


async def values(directory: Directory, partition: int) -> list[bytes | None]:
    async with Consumer(directory.bootstrap) as consumer:
        where = TopicPartition(TOPIC, partition)
        consumer.assign([where])
        end = (await consumer.end_offsets(where))[where]
        consumer.seek(where, 0)
        found: list[bytes | None] = []
        while len(found) < end:
            found += [record.value for record in await consumer.poll()]
    return found


def expected(kraft_version: int, *names: str) -> Content:
    return Content(
        kraft_version,
        PARTITIONS,
        dict(CONFIGS),
        OFFSETS,
        [
            [
                f"{name}-{number}".encode()
                for name in names
                for number in range(100)
                if number % PARTITIONS == partition
            ]
            for partition in range(PARTITIONS)
        ],
    )


def test_kafka_starts_on_ours(directory: Directory) -> None:
    """And ours on what Kafka then wrote."""
    assert directory.on_ours(filled) == expected(0, "first")
    directory.broker.configure(
        {"controller.quorum.voters": f"{NODE_ID}@{HOST}:{directory.broker.controller_port}"}
    )
    assert directory.on_kafka(extended) == expected(0, "first")
    assert directory.on_ours(content) == expected(0, "first", "second")
    assert complaints(directory) == []


def test_ours_starts_on_kafkas(directory: Directory) -> None:
    """And Kafka on what ours then wrote."""
    directory.broker.format()
    assert directory.on_kafka(filled) == expected(1, "first")
    assert directory.on_ours(extended) == expected(1, "first")
    assert directory.on_kafka(content) == expected(1, "first", "second")
    assert complaints(directory) == []


def complaints(directory: Directory) -> list[str]:
    lines = directory.broker.log.read_text().splitlines()
    return [line for line in lines if any(word in line for word in COMPLAINTS)]
