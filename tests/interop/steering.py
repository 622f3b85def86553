"""Seek, pause and resume, by each make of client as its users do it.

Law: a story reads a topic of two partitions with the second paused, goes back in the first, then
takes up the second; it gives what it read in each of the three parts, as (partition, offset).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka

from kafkawire.client.consumer import TopicPartition
from kafkawire.net.consumer import Consumer

from .node import Node

MANY: Final = 10
BACK_TO: Final = 7
SECONDS: Final = 25.0
Read = list[tuple[int, int]]
Story = Callable[[str, str, Callable[[], None]], list[Read]]
"""Told where the brokers are, the topic, and what writes `MANY` records to each partition."""
EXPECTED: Final[list[Read]] = [
    [(0, at) for at in range(MANY)],
    [(0, at) for at in range(BACK_TO, MANY)],
    [(1, at) for at in range(MANY)],
]


def ours(bootstrap: str, topic: str, write: Callable[[], None]) -> list[Read]:
    async def part(consumer: Consumer, count: int) -> Read:
        found: Read = []
        async with asyncio.timeout(SECONDS):
            while len(found) < count:
                found += [(each.partition, each.offset) for each in await consumer.poll()]
        return found

    async def story() -> list[Read]:
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        config = {"bootstrap.servers": bootstrap, "group.id": f"{topic}-ours"}
        async with Consumer({**config, "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe([topic])
            await consumer.poll(0.1)
            while len(consumer.assignment()) < 2:
                await consumer.poll(0.1)
            consumer.pause(second)
            await asyncio.to_thread(write)
            parts = [await part(consumer, MANY)]
            consumer.seek(first, BACK_TO)
            parts.append(await part(consumer, MANY - BACK_TO))
            consumer.resume(second)
            return [*parts, await part(consumer, MANY)]

    return asyncio.run(story())


def confluent(bootstrap: str, topic: str, write: Callable[[], None]) -> list[Read]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-confluent",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        while len(consumer.assignment()) < 2:
            assert consumer.poll(0.1) is None
        consumer.pause([confluent_kafka.TopicPartition(topic, 1)])
        write()
        parts = [_confluent(consumer, MANY)]
        consumer.seek(confluent_kafka.TopicPartition(topic, 0, BACK_TO))
        parts.append(_confluent(consumer, MANY - BACK_TO))
        consumer.resume([confluent_kafka.TopicPartition(topic, 1)])
        return [*parts, _confluent(consumer, MANY)]
    finally:
        consumer.close()


def _confluent(consumer: Any, count: int) -> Read:
    found: Read = []
    while len(found) < count:
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        found.append((message.partition(), message.offset()))
    return found


def kafka_python(bootstrap: str, topic: str, write: Callable[[], None]) -> list[Read]:
    consumer: Any = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap.split(","),
        group_id=f"{topic}-kafka-python",
        auto_offset_reset="earliest",
    )
    first, second = kafka.TopicPartition(topic, 0), kafka.TopicPartition(topic, 1)

    def part(count: int) -> Read:
        found: Read = []
        while len(found) < count:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [(each.partition, each.offset) for each in records]
        return found

    consumer.subscribe([topic])
    try:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=1000)
        consumer.pause(second)
        write()
        parts = [part(MANY)]
        consumer.seek(first, BACK_TO)
        parts.append(part(MANY - BACK_TO))
        consumer.resume(second)
        return [*parts, part(MANY)]
    finally:
        consumer.close()


def aio_kafka(bootstrap: str, topic: str, write: Callable[[], None]) -> list[Read]:
    async def part(consumer: Any, count: int) -> Read:
        found: Read = []
        async with asyncio.timeout(SECONDS):
            while len(found) < count:
                record = await consumer.getone()
                found.append((record.partition, record.offset))
        return found

    async def story() -> list[Read]:
        first, second = aiokafka.TopicPartition(topic, 0), aiokafka.TopicPartition(topic, 1)
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{topic}-aiokafka",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            while len(consumer.assignment()) < 2:
                await consumer.getmany(timeout_ms=100)
            consumer.pause(second)
            await asyncio.to_thread(write)
            parts = [await part(consumer, MANY)]
            consumer.seek(first, BACK_TO)
            parts.append(await part(consumer, MANY - BACK_TO))
            consumer.resume(second)
            return [*parts, await part(consumer, MANY)]
        finally:
            await consumer.stop()

    return asyncio.run(story())


def kafkajs(node: Node) -> Story:
    def story(bootstrap: str, topic: str, write: Callable[[], None]) -> list[Read]:
        asked = {"brokers": bootstrap.split(","), "topic": topic, "group": f"{topic}-kafkajs"}
        parts: list[Read] = []
        with node.popen("steer", json.dumps(asked)) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                if "write" in said:
                    write()
                    process.stdin.write("written\n")
                    process.stdin.flush()
                else:
                    parts.append([(partition, offset) for partition, offset in said["read"]])
        return parts

    return story


STORIES: Final[Mapping[str, Story]] = {
    "kafkawire": ours,
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aio_kafka,
}
