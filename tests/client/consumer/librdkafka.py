"""Creates topics, produces records and reads committed offsets with librdkafka."""

from __future__ import annotations

from collections.abc import Mapping

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkawire.client.consumer import TopicPartition

TIMEOUT_S = 100.0


def create(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic; it keeps records however old they are."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(TIMEOUT_S)


def produce(
    bootstrap: str,
    topic: str,
    values: Mapping[int, list[bytes]],
    *,
    compression: str = "none",
    timestamp: int = 0,
) -> None:
    """Produce values to partitions."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "compression.type": compression}
    )
    for partition, listed in values.items():
        for value in listed:
            producer.produce(topic, value, partition=partition, timestamp=timestamp)
    assert producer.flush(TIMEOUT_S) == 0


def committed(bootstrap: str, group: str, *partitions: TopicPartition) -> dict[TopicPartition, int]:
    """Return the committed offsets of a group."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        requested = [confluent_kafka.TopicPartition(*each) for each in partitions]
        found = reader.committed(requested, timeout=TIMEOUT_S)
        return {TopicPartition(each.topic, each.partition): each.offset for each in found}
    finally:
        reader.close()
