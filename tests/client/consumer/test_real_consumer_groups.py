"""Our consumer with group.protocol=consumer and a real Apache Kafka broker, alone and beside
librdkafka's in one group.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import count
from threading import Event, Thread

import confluent_kafka
import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import (
    ConsumerRecord,
    GroupFailed,
    SubscriptionPattern,
    TopicPartition,
)
from kafkawire.net.consumer import Consumer
from kafkawire.protocol.error_code import ErrorCode
from tests.real.broker import Broker

from . import librdkafka
from .test_real import (
    TIMEOUT_S,
    RecordingListener,
    numbered,
    read,
    reading,
    run,
    until,
    values,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
NAMES = count()
PARTITIONS = 4
COUNT = 50


@pytest.fixture
def topic(kafka: Broker) -> str:
    """A new topic with four partitions."""
    name = f"assigned-{next(NAMES)}"
    librdkafka.create(kafka.bootstrap, name, PARTITIONS)
    return name


def member(kafka: Broker, group: str, **config: Setting) -> Consumer:
    given: dict[str, Setting] = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "metadata.max.age.ms": 1_000,
        **{name.replace("_", "."): value for name, value in config.items()},
    }
    return Consumer(given)


def write(kafka: Broker, topic: str, start: int = 0) -> None:
    """Write so many records to each partition."""
    listed = {n: numbered(start, start + COUNT) for n in range(PARTITIONS)}
    librdkafka.produce(kafka.bootstrap, topic, listed)


@contextmanager
def librdkafka_reads(
    kafka: Broker, topic: str, into: list[tuple[int, int]]
) -> Iterator[Callable[[], int]]:
    """Read as a member of the same group; `into`: partition and offset.

    Yields what returns the number of its partitions. One thread makes all calls: that of another
    would keep the interpreter's lock while it waits for a poll.
    """
    other = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": topic,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    other.subscribe([topic])
    ended = Event()
    assigned: list[int] = [0]

    def poll() -> None:
        while not ended.is_set():
            message = other.poll(0.1)
            assigned.append(len(other.assignment()))
            if message is not None and message.error() is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                into.append((partition, offset))
        other.close()

    thread = Thread(target=poll)
    thread.start()
    try:
        yield lambda: assigned[-1]
    finally:
        ended.set()
        thread.join(TIMEOUT_S)


def test_members_come_and_go_and_each_record_is_read_once(kafka: Broker, topic: str) -> None:
    write(kafka, topic)

    async def scenario() -> None:
        records: list[ConsumerRecord] = []
        async with AsyncExitStack() as others, member(kafka, topic) as one:
            listener = RecordingListener(one)
            one.subscribe([topic], listener)
            async with reading(one, records):
                await until(lambda: len(one.assignment()) == 4, one.assignment)
                two = await others.enter_async_context(member(kafka, topic))
                two.subscribe([topic])
                await others.enter_async_context(reading(two, records))
                await until(
                    lambda: len(one.assignment()) == len(two.assignment()) == 2, one.assignment
                )
                await asyncio.to_thread(write, kafka, topic, COUNT)
                await until(lambda: len(records) >= 8 * COUNT, lambda: len(records))
                await others.aclose()
                await until(lambda: len(one.assignment()) == 4, one.assignment)
                await asyncio.to_thread(write, kafka, topic, 2 * COUNT)
                await until(lambda: len(records) >= 12 * COUNT, lambda: len(records))
        read = Counter((each.partition, each.offset) for each in records)
        assert read == Counter((n, offset) for n in range(4) for offset in range(3 * COUNT))
        changes = [(change, len(which)) for change, which in listener.events]
        assert changes[0] == ("assigned", 4)
        assert ("revoked", 2) in changes
        assert "lost" not in {change for change, _ in changes}

    run(scenario())
    partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
    committed = librdkafka.committed(kafka.bootstrap, topic, *partitions)
    assert committed == dict.fromkeys(partitions, 3 * COUNT)


def test_beside_librdkafka_in_one_group(kafka: Broker, topic: str) -> None:
    write(kafka, topic)

    async def scenario() -> None:
        ours: list[ConsumerRecord] = []
        theirs: list[tuple[int, int]] = []
        async with member(kafka, topic) as one:
            one.subscribe([topic])
            async with reading(one, ours):
                await until(lambda: len(one.assignment()) == 4, one.assignment)
                with librdkafka_reads(kafka, topic, theirs) as other:
                    await until(
                        lambda: len(one.assignment()) == other() == 2,
                        one.assignment,
                    )
                    await asyncio.to_thread(write, kafka, topic, COUNT)
                    await until(lambda: len(ours) + len(theirs) >= 8 * COUNT, lambda: len(theirs))
                await until(lambda: len(one.assignment()) == 4, one.assignment)
                await asyncio.to_thread(write, kafka, topic, 2 * COUNT)
                await until(lambda: len(ours) + len(theirs) >= 12 * COUNT, lambda: len(ours))
        assert theirs
        read = Counter([*((each.partition, each.offset) for each in ours), *theirs])
        assert read == Counter((n, offset) for n in range(4) for offset in range(3 * COUNT))

    run(scenario())


def test_a_pattern_that_the_broker_matches(kafka: Broker) -> None:
    stem = f"matched-{next(NAMES)}"
    for name in ("a", "b"):
        librdkafka.create(kafka.bootstrap, f"{stem}-{name}", 1)
    librdkafka.produce(kafka.bootstrap, f"{stem}-b", {0: [b"b"]})

    async def scenario() -> None:
        async with member(kafka, stem) as it:
            it.subscribe(SubscriptionPattern(f"{stem}-[b-z]"))
            assert values(await read(it, 1)) == [b"b"]
            assert it.subscription() == {f"{stem}-b"}
            await it.unsubscribe()
            it.subscribe([f"{stem}-a", f"{stem}-b"])
            sink: list[ConsumerRecord] = []
            async with reading(it, sink):
                await until(lambda: len(it.assignment()) == 2, it.assignment)
        async with member(kafka, stem) as it:
            it.subscribe(SubscriptionPattern(f"{stem}-("))
            with pytest.raises(GroupFailed) as caught:
                await it.poll(TIMEOUT_S)
            assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION

    run(scenario())


def test_a_static_member_keeps_its_partitions_and_its_name(kafka: Broker, topic: str) -> None:
    async def scenario() -> None:
        sink: list[ConsumerRecord] = []
        async with member(kafka, topic) as other:
            listener = RecordingListener(other)
            other.subscribe([topic], listener)
            async with reading(other, sink):
                async with member(kafka, topic, group_instance_id="one") as it:
                    it.subscribe([topic])
                    async with reading(it, sink):
                        await until(lambda: len(it.assignment()) == 2, it.assignment)
                        had = it.assignment()
                        async with member(kafka, topic, group_instance_id="one") as second:
                            second.subscribe([topic])
                            with pytest.raises(GroupFailed, match=r"group\.instance\.id") as caught:
                                await second.poll(TIMEOUT_S)
                            assert caught.value.code == ErrorCode.UNRELEASED_INSTANCE_ID
                await until(lambda: len(other.assignment()) == 2, other.assignment)
                before = list(listener.events)
                async with member(kafka, topic, group_instance_id="one") as it:
                    it.subscribe([topic])
                    async with reading(it, sink):
                        await until(lambda: it.assignment() == had, it.assignment)
                assert listener.events == before

    run(scenario())


def test_an_assignor_of_the_broker(kafka: Broker, topic: str) -> None:
    async def scenario() -> None:
        sink: list[ConsumerRecord] = []
        async with member(kafka, topic, group_remote_assignor="alphabetical") as it:
            it.subscribe([topic])
            with pytest.raises(GroupFailed, match=r"group\.remote\.assignor") as caught:
                await it.poll(TIMEOUT_S)
            assert caught.value.code == ErrorCode.UNSUPPORTED_ASSIGNOR
        async with member(kafka, topic, group_remote_assignor="range") as it:
            it.subscribe([topic])
            async with reading(it, sink):
                await until(lambda: len(it.assignment()) == 4, it.assignment)

    run(scenario())
