"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from .footing import SESSION_MS, Make, Order, Part, Reader, Seen, Steered, sasl_words

ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._reader.told("revoked")(revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._reader.told("assigned")(assigned)


class _Reader(Steered):
    def __init__(self, config: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._runner = asyncio.Runner()

        async def start() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(**config)
            consumer.subscribe([topic], listener=_Listener(self))
            await consumer.start()
            return consumer

        self._consumer: Any = self._runner.run(start())

    def poll(self) -> list[Seen]:
        found = self._runner.run(self._consumer.getmany(timeout_ms=50))
        return [
            Seen(each.topic, each.partition, each.offset, each.key, each.value)
            for records in found.values()
            for each in records
        ]

    def pause(self, partition: int) -> None:
        self._on_loop(self._consumer.pause, self._at(partition))

    def resume(self, partition: int) -> None:
        self._on_loop(self._consumer.resume, self._at(partition))

    def seek(self, partition: int, offset: int) -> None:
        self._on_loop(self._consumer.seek, self._at(partition), offset)

    def _on_loop(self, call: Callable[..., object], *given: object) -> None:
        async def run() -> None:
            call(*given)

        self._runner.run(run())

    def commit(self, offset: int | None = None) -> None:
        self._runner.run(self._consumer.commit(None if offset is None else {self._at(0): offset}))

    def commit_async(self, offset: int) -> Callable[[], bool]:
        task = self._runner.get_loop().create_task(self._consumer.commit({self._at(0): offset}))
        return lambda: task.done() and task.exception() is None

    def _at(self, partition: int) -> Any:
        return aiokafka.TopicPartition(self._topic, partition)

    def close(self) -> list[Seen]:
        with self._runner:
            self._runner.run(self._consumer.stop())
        return []


class AioKafka(Make):
    """Its `commit` is a coroutine; what others call asynchronous is a task of it."""

    name = "aiokafka"
    strategies = tuple(ASSIGNORS)

    def send(self, order: Order) -> list[tuple[int, int]]:
        async def run() -> list[tuple[int, int]]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=order.bootstrap,
                acks=order.acks if order.acks == "all" else int(order.acks),
                compression_type=None if order.codec == "none" else order.codec,
                enable_idempotence=order.idempotent,
                **sasl_words(order.sasl),
            )
            try:
                await producer.start()
                sent = [
                    await producer.send(order.topic, value, key=f"k{at}".encode())
                    for at, value in enumerate(order.values)
                ]
                went = await asyncio.gather(*sent)
            finally:
                await producer.stop()
            return order.places(went)

        return asyncio.run(run())

    def reader(self, part: Part) -> Reader:
        config: dict[str, Any] = {
            "bootstrap_servers": part.bootstrap,
            "group_id": part.group,
            "auto_offset_reset": part.reset,
            "partition_assignment_strategy": [ASSIGNORS[part.strategy or "range"]],
            "enable_auto_commit": part.auto_commit_ms is not None,
            "auto_commit_interval_ms": part.auto_commit_ms or 5000,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": SESSION_MS,
            **sasl_words(part.sasl),
        }
        if part.instance is not None:
            config["group_instance_id"] = part.instance
        return _Reader(config, part.topic)
