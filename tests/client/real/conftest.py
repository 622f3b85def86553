"""A real broker for these tests, and topics in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so
    AdminClient,
    ConfigResource,
    NewTopic,
)

from tests.real.broker import Broker

NUMBERS = count()
SECONDS = 100.0
ATTEMPTS = 1000


@pytest.fixture
def topic(kafka: Broker) -> Callable[..., str]:
    """Make a new topic with so many partitions and these settings."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"client-{next(NUMBERS)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        made = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
        made[name].result(SECONDS)
        wait_for(kafka, admin, name, partitions)
        return name

    return make


def wait_for(kafka: Broker, admin: AdminClient, name: str, partitions: int) -> None:
    """The controller has the topic; wait until the broker knows it and leads all its partitions."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "looks"})
    try:
        for _ in range(ATTEMPTS):
            try:
                admin.describe_configs([resource])[resource].result(SECONDS)
                for partition in range(partitions):
                    consumer.get_watermark_offsets(TopicPartition(name, partition), SECONDS)
            except KafkaException:
                continue
            return
        raise AssertionError(f"{name} is not known after {ATTEMPTS} questions")
    finally:
        consumer.close()
