"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from .interface import (
    TIMEOUT_SECONDS,
    Consume,
    ControllableReader,
    Implementation,
    Produce,
    Reader,
    SeenRecord,
    sasl_settings,
)


class _Reader(ControllableReader):
    def __init__(self, config: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._committed: list[KafkaError | None] = []
        self._consumer = confluent_kafka.Consumer(config | {"on_commit": self._on_commit})
        self._consumer.subscribe(
            [topic], on_assign=self.on_change("assigned"), on_revoke=self.on_change("revoked")
        )

    def _on_commit(self, error: KafkaError | None, _: Any) -> None:
        self._committed.append(error)

    def poll(self) -> list[SeenRecord]:
        message = self._consumer.poll(0.05)
        if message is None:
            return []
        error = message.error()
        if error is not None:
            if error.retriable():
                return []
            raise KafkaException(error)
        seen = message.topic(), message.partition(), message.offset(), message.key()
        return [SeenRecord(*seen, message.value())]  # type: ignore[arg-type]  # records have all of them

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

    def close(self) -> list[SeenRecord]:
        self._consumer.close()
        return []


class Confluent(Implementation):
    name = "confluent-kafka"
    strategies = ("range", "roundrobin", "cooperative-sticky")

    def send(self, args: Produce) -> list[tuple[int, int]]:
        refused: list[KafkaError] = []
        delivered: dict[int, tuple[int, int]] = {}

        def on_error(error: KafkaError) -> None:
            if error.code() == KafkaError._AUTHENTICATION:
                refused.append(error)

        def on_delivery(at: int) -> Callable[[Any, Any], None]:
            def callback(error: Any, message: Any) -> None:
                if error is not None:
                    raise KafkaException(error)
                offset = message.offset()
                delivered[at] = (message.partition(), offset) if args.acks != "0" else (-1, -1)

            return callback

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": args.bootstrap,
                "log_level": 0,
                "acks": args.acks,
                "compression.type": args.codec,
                "enable.idempotence": args.idempotent,
                "message.timeout.ms": 100_000,
                "error_cb": on_error,
                **sasl_settings(args.sasl),
            }
        )
        for at, value in enumerate(args.values):
            producer.produce(args.topic, value, f"k{at}".encode(), on_delivery=on_delivery(at))
        for _ in range(int(TIMEOUT_SECONDS / 0.1)):
            if refused:
                producer.purge()
                raise KafkaException(refused[0])
            if producer.flush(0.1) == 0:
                break
        return [delivered[at] for at in range(len(args.values))]

    def reader(self, args: Consume) -> Reader:
        config: dict[str, Any] = {
            "bootstrap.servers": args.bootstrap,
            "log_level": 0,
            "group.id": args.group,
            "auto.offset.reset": "error" if args.reset == "none" else args.reset,
            "enable.auto.commit": args.auto_commit_ms is not None,
            "auto.commit.interval.ms": args.auto_commit_ms or 0,
            **args.membership,
            **sasl_settings(args.sasl),
        }
        if args.instance is not None:
            config["group.instance.id"] = args.instance
        return _Reader(config, args.topic)
