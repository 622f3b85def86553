"""kafka-python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import kafka
import kafka.errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.real.broker import PASSWORD

from .footing import (
    SESSION_MS,
    TIMEOUT_SECONDS,
    Make,
    Order,
    Part,
    Reader,
    Seen,
    Steered,
    sasl_words,
)

ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._reader.told("revoked")(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._reader.told("assigned")(assigned)


class _Reader(Steered):
    def __init__(self, config: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._consumer: Any = kafka.KafkaConsumer(**config)
        self._consumer.subscribe([topic], listener=_Listener(self))

    def poll(self) -> list[Seen]:
        # a poll that ends between SyncGroup and what follows it loses the assignment: not shorter
        found = self._consumer.poll(timeout_ms=1000)
        return [
            Seen(each.topic, each.partition, each.offset, each.key, each.value)
            for records in found.values()
            for each in records
        ]

    def pause(self, partition: int) -> None:
        self._consumer.pause(self._at(partition))

    def resume(self, partition: int) -> None:
        self._consumer.resume(self._at(partition))

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def commit(self, offset: int | None = None) -> None:
        self._consumer.commit(None if offset is None else self._offsets(offset))

    def commit_async(self, offset: int) -> Callable[[], bool]:
        done: list[Any] = []
        self._consumer.commit_async(
            self._offsets(offset), callback=lambda _, answer: done.append(answer)
        )
        return lambda: bool(done) and not isinstance(done[0], Exception)

    def _offsets(self, offset: int) -> dict[Any, Any]:
        return {self._at(0): kafka.OffsetAndMetadata(offset, "", -1)}

    def _at(self, partition: int) -> Any:
        return kafka.TopicPartition(self._topic, partition)

    def close(self) -> list[Seen]:
        self._consumer.close()
        return []


class KafkaPython(Make):
    name = "kafka-python"
    strategies = tuple(ASSIGNORS)

    def send(self, order: Order) -> list[tuple[int, int]]:
        made: list[Any] = []

        def client(**config: Any) -> Any:
            made.append(kafka.KafkaProducer.DEFAULT_CONFIG["kafka_client"](**config))
            return made[-1]

        try:
            producer = self._producer(order, client)
        except kafka.errors.KafkaError:
            made[0].close()  # which it does not do itself when it cannot begin
            raise
        try:
            futures = [
                producer.send(order.topic, value, f"k{at}".encode())
                for at, value in enumerate(order.values)
            ]
            producer.flush(TIMEOUT_SECONDS)
            went = [each.get(TIMEOUT_SECONDS) for each in futures]
        finally:
            producer.close(timeout=30)
        return order.places(went)

    @staticmethod
    def _producer(order: Order, client: Callable[..., Any]) -> Any:
        return kafka.KafkaProducer(
            bootstrap_servers=order.bootstrap.split(","),
            acks=order.acks if order.acks == "all" else int(order.acks),
            compression_type=None if order.codec == "none" else order.codec,
            enable_idempotence=order.idempotent,
            max_block_ms=60_000,
            # that its password is wrong it says in no other way than by giving up
            bootstrap_timeout_ms=5000 if order.sasl and order.sasl.password != PASSWORD else 60_000,
            kafka_client=client,
            **sasl_words(order.sasl),
        )

    def reader(self, part: Part) -> Reader:
        config: dict[str, Any] = {
            "bootstrap_servers": part.bootstrap.split(","),
            "group_id": part.group,
            "auto_offset_reset": part.reset,
            "partition_assignment_strategy": [ASSIGNORS[part.strategy or "range"]],
            "enable_auto_commit": part.auto_commit_ms is not None,
            "auto_commit_interval_ms": part.auto_commit_ms or 0,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": SESSION_MS,
            "max_poll_interval_ms": 60_000,
            **sasl_words(part.sasl),
        }
        if part.instance is not None:
            config["group_instance_id"] = part.instance
        return _Reader(config, part.topic)
