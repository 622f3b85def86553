"""Compares clients at the same Apache Kafka broker: records sent and read.

Every client has the same settings (acks all, 64 KiB batches, 5 ms of linger; idempotent, as
Kafka's own producer is, or not) and is used as its documentation says; a figure is the wall-clock
time of a run per record, connecting included. The broker is warm: WARM_UP rounds do not count. Each
round begins with another client, and in each all clients read the batches of the same client, a
different one each round.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka

from kafkawire.client.consumer import TopicPartition
from kafkawire.net.admin import LATEST, Admin
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from tests.real.broker import running
from tests.real.java import install

from ..measure import Figure, figure, rotated

SIZES: Final = {100: 200_000, 1000: 50_000}
"""Bytes of a value, and how many records of that a run has."""
IDEMPOTENCE: Final = {False: "", True: ", idempotent"}
BATCH: Final = 65_536
LINGER_MS: Final = 5
WARM_UP: Final = 2
TOPICS: Final = count()
Send = Callable[[str, str, bytes, int, bool], None]
Read = Callable[[str, str, int], None]


def send_ours(bootstrap: str, topic: str, value: bytes, many: int, idempotent: bool) -> None:
    """Send records with kafkawire."""

    async def run() -> None:
        async with Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": idempotent,
                "acks": "all",
                "batch.size": BATCH,
                "linger.ms": LINGER_MS,
            }
        ) as producer:
            for _ in range(many):
                await producer.send(topic, value)
            await producer.flush()

    asyncio.run(run())


def send_aiokafka(bootstrap: str, topic: str, value: bytes, many: int, idempotent: bool) -> None:
    """Send records with aiokafka."""

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=idempotent,
            max_batch_size=BATCH,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        for _ in range(many):
            await producer.send(topic, value)
        await producer.stop()

    asyncio.run(run())


def send_kafka_python(
    bootstrap: str, topic: str, value: bytes, many: int, idempotent: bool
) -> None:
    """Send records with kafka-python."""
    producer: Any = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=idempotent,
        batch_size=BATCH,
        linger_ms=LINGER_MS,
    )
    for _ in range(many):
        producer.send(topic, value)
    producer.flush()
    producer.close()


def confluent_producer(bootstrap: str, **settings: object) -> confluent_kafka.Producer:
    """Make a producer of librdkafka with the settings that all contenders have."""
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "batch.size": BATCH,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 1_000_000,
            **settings,
        }
    )


def send_confluent(bootstrap: str, topic: str, value: bytes, many: int, idempotent: bool) -> None:
    """Send records with librdkafka."""
    producer = confluent_producer(bootstrap, **{"enable.idempotence": idempotent})
    for _ in range(many):
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def read_ours(bootstrap: str, topic: str, many: int) -> None:
    """Read records with kafkawire."""

    async def run() -> None:
        async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
            where = TopicPartition(topic, 0)
            consumer.assign([where])
            consumer.seek_to_beginning(where)
            left = many
            async for _ in consumer:
                left -= 1
                if not left:
                    return

    asyncio.run(run())


def read_aiokafka(bootstrap: str, topic: str, many: int) -> None:
    """Read records with aiokafka."""

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.start()
        left = many
        try:
            async for _ in consumer:
                left -= 1
                if not left:
                    return
        finally:
            await consumer.stop()

    asyncio.run(run())


def read_kafka_python(bootstrap: str, topic: str, many: int) -> None:
    """Read records with kafka-python."""
    consumer: Any = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    left = many
    for _ in consumer:
        left -= 1
        if not left:
            break
    consumer.close()


def read_confluent(bootstrap: str, topic: str, many: int) -> None:
    """Read records with librdkafka."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    left = many
    while left:
        left -= len(consumer.consume(500, timeout=20))
    consumer.close()


SENDERS: Final[dict[str, Send]] = {
    "kafkawire": send_ours,
    "aiokafka": send_aiokafka,
    "kafka-python": send_kafka_python,
    "confluent-kafka": send_confluent,
}
READERS: Final[dict[str, Read]] = {
    "kafkawire": read_ours,
    "aiokafka": read_aiokafka,
    "kafka-python": read_kafka_python,
    "confluent-kafka": read_confluent,
}


def run(rounds: int) -> list[Figure]:
    """Measure; microseconds per record. Use a multiple of the clients as rounds."""
    values: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, running(install(), Path(folder)) as broker:
        for turn in range(WARM_UP + rounds):
            for size, many in SIZES.items():
                taken = _turn(broker.bootstrap, bytes(size), many, turn - WARM_UP)
                for key, found in taken.items() if turn >= WARM_UP else ():
                    values.setdefault(key, []).append(found)
    cases = dict.fromkeys(case for case, _ in values)
    return [
        figure("clients", case, name, "µs", values[case, name])
        for case in cases
        for name in SENDERS
    ]


def _turn(bootstrap: str, value: bytes, many: int, turn: int) -> dict[tuple[str, str], float]:
    """Have each client write a topic of its own, then each read the topic of the first."""
    taken: dict[tuple[str, str], float] = {}
    names = rotated(SENDERS, turn)
    topics = []
    for idempotent, what in IDEMPOTENCE.items():
        for name in names:
            topics.append(_topic(bootstrap))
            start = perf_counter()
            SENDERS[name](bootstrap, topics[-1], value, many, idempotent)
            case = f"produce {len(value)} B{what}"
            taken[case, name] = (perf_counter() - start) / many * 1e6
    # The client that wrote the topic does not always read first.
    for name in rotated(SENDERS, turn + turn // len(names)):
        start = perf_counter()
        READERS[name](bootstrap, topics[0], many)
        taken[f"consume {len(value)} B", name] = (perf_counter() - start) / many * 1e6
    _delete(bootstrap, topics)
    return taken


def _topic(bootstrap: str) -> str:
    name = f"bench-{next(TOPICS)}"

    async def make() -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            await admin.create_topic(name, partitions=1, replication_factor=1)
            await admin.list_offsets({(name, 0): LATEST})

    asyncio.run(make())
    return name


def _delete(bootstrap: str, topics: list[str]) -> None:
    async def delete() -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            for topic in topics:
                await admin.delete_topic(topic)

    asyncio.run(delete())
