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

from .interface import (
    SESSION_MS,
    TIMEOUT_SECONDS,
    Consume,
    ControllableReader,
    Implementation,
    Produce,
    Reader,
    SeenRecord,
    sasl_arguments,
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
        self._reader.on_change("revoked")(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._reader.on_change("assigned")(assigned)


class _Reader(ControllableReader):
    def __init__(self, config: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._consumer: Any = kafka.KafkaConsumer(**config)
        self._consumer.subscribe([topic], listener=_Listener(self))

    def poll(self) -> list[SeenRecord]:
        # a shorter poll may end between SyncGroup and the next request, and lose the assignment
        found = self._consumer.poll(timeout_ms=1000)
        return [
            SeenRecord(each.topic, each.partition, each.offset, each.key, each.value)
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
            self._offsets(offset), callback=lambda _, result: done.append(result)
        )
        return lambda: bool(done) and not isinstance(done[0], Exception)

    def _offsets(self, offset: int) -> dict[Any, Any]:
        return {self._at(0): kafka.OffsetAndMetadata(offset, "", -1)}

    def _at(self, partition: int) -> Any:
        return kafka.TopicPartition(self._topic, partition)

    def close(self) -> list[SeenRecord]:
        self._consumer.close()
        return []


class KafkaPython(Implementation):
    name = "kafka-python"
    strategies = tuple(ASSIGNORS)

    def send(self, args: Produce) -> list[tuple[int, int]]:
        clients: list[Any] = []

        def client(**config: Any) -> Any:
            clients.append(kafka.KafkaProducer.DEFAULT_CONFIG["kafka_client"](**config))
            return clients[-1]

        try:
            producer = self._producer(args, client)
        except kafka.errors.KafkaError:
            clients[0].close()  # it is not closed when the producer fails to start
            raise
        try:
            futures = [
                producer.send(args.topic, value, f"k{at}".encode())
                for at, value in enumerate(args.values)
            ]
            producer.flush(TIMEOUT_SECONDS)
            delivered = [each.get(TIMEOUT_SECONDS) for each in futures]
        finally:
            producer.close(timeout=30)
        return args.places(delivered)

    @staticmethod
    def _producer(args: Produce, client: Callable[..., Any]) -> Any:
        return kafka.KafkaProducer(
            bootstrap_servers=args.bootstrap.split(","),
            acks=args.acks if args.acks == "all" else int(args.acks),
            compression_type=None if args.codec == "none" else args.codec,
            enable_idempotence=args.idempotent,
            max_block_ms=60_000,
            # a wrong password is only reported by this timeout
            bootstrap_timeout_ms=5000 if args.sasl and args.sasl.password != PASSWORD else 60_000,
            kafka_client=client,
            **sasl_arguments(args.sasl),
        )

    def reader(self, args: Consume) -> Reader:
        config: dict[str, Any] = {
            "bootstrap_servers": args.bootstrap.split(","),
            "group_id": args.group,
            "auto_offset_reset": args.reset,
            "partition_assignment_strategy": [ASSIGNORS[args.strategy or "range"]],
            "enable_auto_commit": args.auto_commit_ms is not None,
            "auto_commit_interval_ms": args.auto_commit_ms or 0,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": SESSION_MS,
            "max_poll_interval_ms": 60_000,
            **sasl_arguments(args.sasl),
        }
        if args.instance is not None:
            config["group_instance_id"] = args.instance
        return _Reader(config, args.topic)
