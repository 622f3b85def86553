"""confluent-kafka (librdkafka), kafka-python and aiokafka, on one footing.

Law: each is used as its own users use it; what differs is only how it is called. All of it runs in
threads, so that members of a group can wait for each other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import aiokafka
import confluent_kafka
import kafka
import kafka.errors

PATIENCE_SECONDS: Final = 25.0


class Seen(NamedTuple):
    """A record as a consumer saw it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Sasl(NamedTuple):
    """Who to be."""

    mechanism: str
    user: str
    password: str


class Member(ABC):
    """A consumer that polls in a thread until it is told to leave."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.assigned: set[tuple[str, int]] = set()
        self.changes: list[tuple[str, frozenset[tuple[str, int]]]] = []
        self.error: BaseException | None = None
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self.run(self._leave)
        except BaseException as error:  # noqa: BLE001 - told to the test that waits
            self.error = error

    @abstractmethod
    def run(self, leave: threading.Event) -> None:
        """Poll until told to leave, then commit and close."""

    def note(self, kind: str, partitions: Sequence[tuple[str, int]]) -> None:
        """Take in what the group gave or took."""
        self.changes.append((kind, frozenset(partitions)))
        if kind == "assigned":
            self.assigned |= set(partitions)
        else:
            self.assigned -= set(partitions)

    def until(self, happens: Callable[[], bool]) -> None:
        """Wait for something that polling brings about."""
        until(lambda: happens() or self.error is not None)
        assert self.error is None, self.error

    def leave(self) -> None:
        """Commit, leave the group, and end."""
        self._leave.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        assert self.error is None, self.error


def until(happens: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Make(ABC):
    """A make of client."""

    name: str
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    strategies: tuple[str, ...] = ("range", "roundrobin")

    @abstractmethod
    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        """Produce values with keys k0, k1 ...; where each went, (-1, -1) with acks 0."""

    @abstractmethod
    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        """Start a consumer in a group."""


# -- librdkafka


def _confluent(bootstrap: str, sasl: Sasl | None) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
    if sasl is not None:
        config |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": sasl.mechanism,
            "sasl.username": sasl.user,
            "sasl.password": sasl.password,
        }
    return config


class _ConfluentMember(Member):
    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        self._config = dict(config)
        self._topic = topic
        super().__init__()

    def run(self, leave: threading.Event) -> None:
        consumer = confluent_kafka.Consumer(self._config)

        def told(kind: str) -> Callable[[Any, Any], None]:
            return lambda _, parts: self.note(kind, [(p.topic, p.partition) for p in parts])

        consumer.subscribe([self._topic], on_assign=told("assigned"), on_revoke=told("revoked"))
        try:
            self._poll(consumer, leave)
        finally:
            consumer.close()

    def _poll(self, consumer: Any, leave: threading.Event) -> None:
        while not leave.is_set():
            message = consumer.poll(0.05)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.retriable():
                    continue
                raise confluent_kafka.KafkaException(error)
            self.seen.append(
                Seen(
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                )
            )
        try:
            consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:
                raise


class Confluent(Make):
    name = "confluent-kafka"
    strategies = ("range", "roundrobin", "cooperative-sticky")

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        producer = confluent_kafka.Producer(
            _confluent(bootstrap, sasl)
            | {
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "message.timeout.ms": 20_000,
            }
        )
        went: dict[int, tuple[int, int]] = {}

        def delivered(at: int) -> Callable[[Any, Any], None]:
            def callback(error: Any, message: Any) -> None:
                if error is not None:
                    raise confluent_kafka.KafkaException(error)
                offset = message.offset()
                went[at] = (message.partition(), offset) if acks != "0" else (-1, -1)

            return callback

        for at, value in enumerate(values):
            producer.produce(topic, value, f"k{at}".encode(), on_delivery=delivered(at))
        assert producer.flush(PATIENCE_SECONDS) == 0
        return [went[at] for at in range(len(values))]

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        config = _confluent(bootstrap, sasl) | {
            "group.id": group,
            "auto.offset.reset": reset,
            "partition.assignment.strategy": strategy,
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
        }
        if instance is not None:
            config["group.instance.id"] = instance
        return _ConfluentMember(config, topic)


# -- kafka-python


def _kafka_python(bootstrap: str, sasl: Sasl | None) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap_servers": bootstrap.split(",")}
    if sasl is not None:
        config |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": sasl.mechanism,
            "sasl_plain_username": sasl.user,
            "sasl_plain_password": sasl.password,
        }
    return config


class _KafkaPythonMember(Member, kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        self._config = dict(config)
        self._topic = topic
        super().__init__()

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.note("revoked", [(p.topic, p.partition) for p in revoked])

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.note("assigned", [(p.topic, p.partition) for p in assigned])

    def run(self, leave: threading.Event) -> None:
        consumer = kafka.KafkaConsumer(**self._config)
        consumer.subscribe([self._topic], listener=self)
        try:
            while not leave.is_set():
                # a poll that ends between SyncGroup and what follows it loses the assignment
                for records in consumer.poll(timeout_ms=1000).values():
                    self.seen += [
                        Seen(r.topic, r.partition, r.offset, r.key, r.value) for r in records
                    ]
            with suppress(kafka.errors.RebalanceInProgressError):  # others leave as well
                consumer.commit()
        finally:
            consumer.close()


class KafkaPython(Make):
    name = "kafka-python"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        producer = kafka.KafkaProducer(
            **_kafka_python(bootstrap, sasl),
            acks=acks if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
        )
        futures = [
            producer.send(topic, value, f"k{at}".encode()) for at, value in enumerate(values)
        ]
        producer.flush(PATIENCE_SECONDS)
        went = [each.get(PATIENCE_SECONDS) for each in futures]
        producer.close()
        return [(-1, -1) if acks == "0" else (each.partition, each.offset) for each in went]

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        by_name = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
        config = _kafka_python(bootstrap, sasl) | {
            "group_id": group,
            "auto_offset_reset": reset,
            "partition_assignment_strategy": [by_name[strategy]],
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": 6000,
            "max_poll_interval_ms": 60_000,
        }
        if instance is not None:
            config["group_instance_id"] = instance
        return _KafkaPythonMember(config, topic)


# -- aiokafka


def _aiokafka(bootstrap: str, sasl: Sasl | None) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap_servers": bootstrap}
    if sasl is not None:
        config |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": sasl.mechanism,
            "sasl_plain_username": sasl.user,
            "sasl_plain_password": sasl.password,
        }
    return config


class _AioKafkaMember(Member, aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, config: Mapping[str, Any], topic: str) -> None:
        self._config = dict(config)
        self._topic = topic
        super().__init__()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self.note("revoked", [(p.topic, p.partition) for p in revoked])

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.note("assigned", [(p.topic, p.partition) for p in assigned])

    def run(self, leave: threading.Event) -> None:
        asyncio.run(self._poll(leave))

    async def _poll(self, leave: threading.Event) -> None:
        consumer = aiokafka.AIOKafkaConsumer(**self._config)
        consumer.subscribe([self._topic], listener=self)
        await consumer.start()
        try:
            while not leave.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.seen += [
                        Seen(r.topic, r.partition, r.offset, r.key, r.value) for r in records
                    ]
            if self.seen:
                await consumer.commit()
        finally:
            await consumer.stop()


class AioKafka(Make):
    name = "aiokafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        async def run() -> list[tuple[int, int]]:
            producer = aiokafka.AIOKafkaProducer(
                **_aiokafka(bootstrap, sasl),
                acks=acks if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(topic, value, f"k{at}".encode())
                    for at, value in enumerate(values)
                ]
                went = await asyncio.gather(*sent)
            finally:
                await producer.stop()
            return [(-1, -1) if acks == "0" else (each.partition, each.offset) for each in went]

        return asyncio.run(run())

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        by_name = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
        config = _aiokafka(bootstrap, sasl) | {
            "group_id": group,
            "auto_offset_reset": reset,
            "partition_assignment_strategy": [by_name[strategy]],
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": 6000,
        }
        if instance is not None:
            config["group_instance_id"] = instance
        return _AioKafkaMember(config, topic)


MAKES: Final[tuple[Make, ...]] = (Confluent(), KafkaPython(), AioKafka())
