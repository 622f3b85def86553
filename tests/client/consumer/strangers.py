"""Members and producers of other make: confluent-kafka (librdkafka) and kafka-python.

Law: each runs in a thread of its own until it is told to stop, and writes down what it read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import confluent_kafka
import kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from kafkawire.client.consumer import TopicPartition

PATIENCE_S = 30.0
KAFKA_PYTHON = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


@dataclass
class Stranger:
    """What another client's member has, and what it read: (topic, partition, offset)."""

    read: list[tuple[str, int, int]] = field(default_factory=list)
    assignment: frozenset[TopicPartition] = frozenset()


def create(bootstrap: str, topic: str, partitions: int) -> None:
    """Make a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)


def produce(
    bootstrap: str,
    topic: str,
    values: Mapping[int, list[bytes]],
    *,
    compression: str = "none",
    timestamp: int = 0,
) -> None:
    """Write values to partitions."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "compression.type": compression}
    )
    for partition, listed in values.items():
        for value in listed:
            producer.produce(topic, value, partition=partition, timestamp=timestamp)
    assert producer.flush(PATIENCE_S) == 0


def committed(bootstrap: str, group: str, *partitions: TopicPartition) -> dict[TopicPartition, int]:
    """Read back what a group committed."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        asked = [confluent_kafka.TopicPartition(*each) for each in partitions]
        found = reader.committed(asked, timeout=PATIENCE_S)
        return {TopicPartition(each.topic, each.partition): each.offset for each in found}
    finally:
        reader.close()


@contextmanager
def librdkafka_member(bootstrap: str, group: str, topic: str, strategy: str) -> Iterator[Stranger]:
    """A member of librdkafka's make."""
    stranger, stop = Stranger(), threading.Event()

    def run() -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": strategy,
                "heartbeat.interval.ms": 500,
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            message = consumer.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                where = message.topic(), message.partition(), message.offset()
                assert None not in where
                stranger.read.append(where)  # type: ignore[arg-type]  # what None is not in
            assigned = consumer.assignment()
            stranger.assignment = frozenset(TopicPartition(a.topic, a.partition) for a in assigned)
        consumer.close()

    with _running(run, stop):
        yield stranger


@contextmanager
def kafka_python_member(
    bootstrap: str, group: str, topic: str, strategy: str
) -> Iterator[Stranger]:
    """A member of kafka-python's make."""
    stranger, stop = Stranger(), threading.Event()

    def run() -> None:
        consumer: Any = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[KAFKA_PYTHON[strategy]],
            heartbeat_interval_ms=500,
            session_timeout_ms=6000,
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            for partition, records in consumer.poll(timeout_ms=50).items():
                stranger.read += [(partition.topic, partition.partition, r.offset) for r in records]
            assigned = consumer.assignment()
            stranger.assignment = frozenset(TopicPartition(a.topic, a.partition) for a in assigned)
        consumer.close()

    with _running(run, stop):
        yield stranger


@contextmanager
def _running(run: Any, stop: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
