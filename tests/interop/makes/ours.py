"""kafkawire's own asyncio clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer

from .footing import RESETS, SESSION_MS, Make, Order, Part, Reader, Seen, Steered, sasl_settings


class _Reader(Steered):
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

    def poll(self) -> list[Seen]:
        found = self._runner.run(self._consumer.poll(0.05))
        return [Seen(*record[:3], record.key, record.value) for record in found]

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

    def close(self) -> list[Seen]:
        with self._runner:
            self._runner.run(self._consumer.close())
        return []


class Ours(Make):
    name = "kafkawire"
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky")
    resets = (*RESETS, "by_duration:PT1H")

    def send(self, order: Order) -> list[tuple[int, int]]:
        config: dict[str, Setting] = {
            "bootstrap.servers": order.bootstrap,
            "acks": order.acks,
            "compression.type": order.codec,
            "enable.idempotence": order.idempotent,
            **sasl_settings(order.sasl),
        }

        async def run() -> list[tuple[int, int]]:
            async with Producer(config) as producer:
                sent = [
                    await producer.send(
                        order.topic,
                        value,
                        key=f"k{at}".encode(),
                        timestamp=order.timestamp,
                        partition=order.partition,
                    )
                    for at, value in enumerate(order.values)
                ]
                went = await asyncio.gather(*sent)
            return order.places(went)

        return asyncio.run(run())

    def reader(self, part: Part) -> Reader:
        config: dict[str, Setting] = {
            "bootstrap.servers": part.bootstrap,
            "group.id": part.group,
            "auto.offset.reset": part.reset,
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
