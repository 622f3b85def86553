"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

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

CLOSE_SECONDS: Final = TIMEOUT_SECONDS / 2
ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._reader.on_change("revoked")(revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._reader.on_change("assigned")(assigned)


class _Reader(ControllableReader):
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

    def poll(self) -> list[SeenRecord]:
        found = self._runner.run(self._consumer.getmany(timeout_ms=50))
        return [
            SeenRecord(each.topic, each.partition, each.offset, each.key, each.value)
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

    def close(self) -> list[SeenRecord]:
        """Stop in time: a thread that stays would log, and draw, in the tests that follow."""

        async def stop() -> None:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._consumer.stop()

        with self._runner:
            self._runner.run(stop())
        return []


class AioKafka(Implementation):
    """`commit` is a coroutine; an asynchronous commit is a task of it."""

    name = "aiokafka"
    strategies = tuple(ASSIGNORS)

    def send(self, args: Produce) -> list[tuple[int, int]]:
        async def run() -> list[tuple[int, int]]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=args.bootstrap,
                acks=args.acks if args.acks == "all" else int(args.acks),
                compression_type=None if args.codec == "none" else args.codec,
                enable_idempotence=args.idempotent,
                **sasl_arguments(args.sasl),
            )
            try:
                await producer.start()
                sent = [
                    await producer.send(args.topic, value, key=f"k{at}".encode())
                    for at, value in enumerate(args.values)
                ]
                delivered = await asyncio.gather(*sent)
            finally:
                await producer.stop()
            return args.places(delivered)

        return asyncio.run(run())

    def reader(self, args: Consume) -> Reader:
        config: dict[str, Any] = {
            "bootstrap_servers": args.bootstrap,
            "group_id": args.group,
            "auto_offset_reset": args.reset,
            "partition_assignment_strategy": [ASSIGNORS[args.strategy or "range"]],
            "enable_auto_commit": args.auto_commit_ms is not None,
            "auto_commit_interval_ms": args.auto_commit_ms or 5000,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": SESSION_MS,
            **sasl_arguments(args.sasl),
        }
        if args.instance is not None:
            config["group_instance_id"] = args.instance
        return _Reader(config, args.topic)
