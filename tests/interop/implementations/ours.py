"""kafkawire's own asyncio clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer

from .interface import (
    RESETS,
    Consume,
    ControllableReader,
    Implementation,
    Produce,
    Reader,
    SeenRecord,
    sasl_settings,
)


class _Reader(ControllableReader):
    def __init__(self, config: dict[str, Setting], topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._runner = asyncio.Runner()

        async def start() -> Consumer:
            consumer = Consumer(config)
            await consumer.__aenter__()
            consumer.subscribe([topic], self)
            return consumer

        self._consumer = self._runner.run(start())

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.note("revoked", partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.note("assigned", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.note("lost", partitions)

    def poll(self) -> list[SeenRecord]:
        found = self._runner.run(self._consumer.poll(0.05))
        return [SeenRecord(*record[:3], record.key, record.value) for record in found]

    def pause(self, partition: int) -> None:
        self._consumer.pause(self._at(partition))

    def resume(self, partition: int) -> None:
        self._consumer.resume(self._at(partition))

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def commit(self, offset: int | None = None) -> None:
        self._runner.run(self._consumer.commit(None if offset is None else {self._at(0): offset}))

    def commit_async(self, offset: int) -> Callable[[], bool]:
        async def begin() -> asyncio.Future[object]:
            return self._consumer.commit_async({self._at(0): offset})

        future = self._runner.run(begin())
        return lambda: future.done() and future.exception() is None

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def close(self) -> list[SeenRecord]:
        with self._runner:
            self._runner.run(self._consumer.close())
        return []


class Ours(Implementation):
    name = "kafkawire"
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky")
    resets = (*RESETS, "by_duration:PT1H")

    def send(self, args: Produce) -> list[tuple[int, int]]:
        config: dict[str, Setting] = {
            "bootstrap.servers": args.bootstrap,
            "acks": args.acks,
            "compression.type": args.codec,
            "enable.idempotence": args.idempotent,
            **sasl_settings(args.sasl),
        }

        async def run() -> list[tuple[int, int]]:
            async with Producer(config) as producer:
                sent = [
                    await producer.send(
                        args.topic,
                        value,
                        key=f"k{at}".encode(),
                        timestamp=args.timestamp,
                        partition=args.partition,
                    )
                    for at, value in enumerate(args.values)
                ]
                delivered = await asyncio.gather(*sent)
            return args.places(delivered)

        return asyncio.run(run())

    def reader(self, args: Consume) -> Reader:
        config: dict[str, Setting] = {
            "bootstrap.servers": args.bootstrap,
            "group.id": args.group,
            "auto.offset.reset": args.reset,
            "enable.auto.commit": args.auto_commit_ms is not None,
            "auto.commit.interval.ms": args.auto_commit_ms or 0,
            **args.membership,
            **sasl_settings(args.sasl),
        }
        if args.instance is not None:
            config["group.instance.id"] = args.instance
        return _Reader(config, args.topic)
