"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from .footing import (
    SESSION_MS,
    TIMEOUT_SECONDS,
    Make,
    Order,
    Part,
    Reader,
    Seen,
    Steered,
    sasl_settings,
)


class _Reader(Steered):
    def __init__(self, config: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._committed: list[KafkaError | None] = []
        self._consumer = confluent_kafka.Consumer(config | {"on_commit": self._on_commit})
        self._consumer.subscribe(
            [topic], on_assign=self.told("assigned"), on_revoke=self.told("revoked")
        )

    def _on_commit(self, error: KafkaError | None, _: Any) -> None:
        self._committed.append(error)

    def poll(self) -> list[Seen]:
        message = self._consumer.poll(0.05)
        if message is None:
            return []
        error = message.error()
        if error is not None:
            if error.retriable():
                return []
            raise KafkaException(error)
        seen = message.topic(), message.partition(), message.offset(), message.key()
        return [Seen(*seen, message.value())]  # type: ignore[arg-type]  # of a record all are there

    def pause(self, partition: int) -> None:
        self._consumer.pause([TopicPartition(self._topic, partition)])

    def resume(self, partition: int) -> None:
        self._consumer.resume([TopicPartition(self._topic, partition)])

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition, offset))

    def commit(self, offset: int | None = None) -> None:
        if offset is None:
            self._consumer.commit(asynchronous=False)
        else:
            self._consumer.commit(offsets=self._at(offset), asynchronous=False)

    def commit_async(self, offset: int) -> Callable[[], bool]:
        self._committed.clear()
        self._consumer.commit(offsets=self._at(offset), asynchronous=True)
        return lambda: self._committed == [None]

    def _at(self, offset: int) -> list[TopicPartition]:
        return [TopicPartition(self._topic, 0, offset)]

    def close(self) -> list[Seen]:
        self._consumer.close()
        return []


class Confluent(Make):
    name = "confluent-kafka"
    strategies = ("range", "roundrobin", "cooperative-sticky")

    def send(self, order: Order) -> list[tuple[int, int]]:
        refused: list[KafkaError] = []
        went: dict[int, tuple[int, int]] = {}

        def told(error: KafkaError) -> None:
            if error.code() == KafkaError._AUTHENTICATION:
                refused.append(error)

        def delivered(at: int) -> Callable[[Any, Any], None]:
            def callback(error: Any, message: Any) -> None:
                if error is not None:
                    raise KafkaException(error)
                offset = message.offset()
                went[at] = (message.partition(), offset) if order.acks != "0" else (-1, -1)

            return callback

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": order.bootstrap,
                "log_level": 0,
                "acks": order.acks,
                "compression.type": order.codec,
                "enable.idempotence": order.idempotent,
                "message.timeout.ms": 100_000,
                "error_cb": told,
                **sasl_settings(order.sasl),
            }
        )
        for at, value in enumerate(order.values):
            producer.produce(order.topic, value, f"k{at}".encode(), on_delivery=delivered(at))
        for _ in range(int(TIMEOUT_SECONDS / 0.1)):
            if refused:
                producer.purge()
                raise KafkaException(refused[0])
            if producer.flush(0.1) == 0:
                break
        return [went[at] for at in range(len(order.values))]

    def reader(self, part: Part) -> Reader:
        config: dict[str, Any] = {
            "bootstrap.servers": part.bootstrap,
            "log_level": 0,
            "group.id": part.group,
            "auto.offset.reset": "error" if part.reset == "none" else part.reset,
            "partition.assignment.strategy": part.strategy or "range",
            "enable.auto.commit": part.auto_commit_ms is not None,
            "auto.commit.interval.ms": part.auto_commit_ms or 0,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": SESSION_MS,
            **sasl_settings(part.sasl),
        }
        if part.instance is not None:
            config["group.instance.id"] = part.instance
        return _Reader(config, part.topic)
