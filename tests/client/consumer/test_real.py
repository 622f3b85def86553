"""The asyncio Consumer and a real Apache Kafka broker."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import confluent_kafka
import pytest

from kafkawire.client.config import Setting
from kafkawire.client.consumer import (
    CommitFailed,
    ConsumerRecord,
    NoOffset,
    OffsetAndMetadata,
    OffsetOutOfRange,
    TopicPartition,
)
from kafkawire.client.failures import ClientClosed
from kafkawire.errors import LocalProtocolError
from kafkawire.net.consumer import Consumer
from tests.real.broker import MECHANISMS, PASSWORD, USER, Broker

from . import librdkafka

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
NAMES = count()
TIMEOUT_S = 200.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Play a scenario on a loop of its own, within bounds."""
    asyncio.run(asyncio.wait_for(scenario, 500.0))


@pytest.fixture
def topic(kafka: Broker) -> str:
    """A new topic with three partitions."""
    name = f"read-{next(NAMES)}"
    librdkafka.create(kafka.bootstrap, name, 3)
    return name


def consumer(kafka: Broker, **config: Setting) -> Consumer:
    """A consumer that is quick to notice."""
    given: dict[str, Setting] = {
        "bootstrap.servers": kafka.bootstrap,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 300,
        "session.timeout.ms": 45_000,
        **{name.replace("_", "."): value for name, value in config.items()},
    }
    return Consumer(given)


async def read(it: Consumer, number: int) -> list[ConsumerRecord]:
    """Read this many records."""
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(found) < number:
            found += await it.poll()
    return found


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % n for n in range(start, end)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_was_written_is_read(kafka: Broker, topic: str, codec: str) -> None:
    written = {n: numbered(n * 100, n * 100 + 50) for n in range(3)}
    librdkafka.produce(kafka.bootstrap, topic, written, compression=codec)

    async def scenario() -> None:
        async with consumer(kafka, group_id=topic) as it:
            it.subscribe([topic])
            found: list[ConsumerRecord] = []
            async for record in it:
                found.append(record)
                if len(found) == 150:
                    break
            for number, listed in written.items():
                mine = [each for each in found if each.partition == number]
                assert values(mine) == listed
                assert [each.offset for each in mine] == list(range(50))

    run(scenario())


def test_what_was_read_is_committed_and_no_more(kafka: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    librdkafka.produce(kafka.bootstrap, topic, {0: numbered(0, 10)})

    async def scenario() -> None:
        async with consumer(kafka, group_id=topic, enable_auto_commit=False) as it:
            it.subscribe([topic])
            for _ in range(4):
                record = await anext(it)
            assert record.offset == 3
            assert await it.position(partition) == 4
            await it.commit()
            assert librdkafka.committed(kafka.bootstrap, topic, partition) == {partition: 4}
            await it.commit({partition: OffsetAndMetadata(7, metadata="noted")})
            assert (await it.committed(partition))[partition] == OffsetAndMetadata(7, -1, "noted")
            first, second = it.commit_async({partition: 8}), it.commit_async({partition: 9})
            done: list[str] = []
            first.add_done_callback(lambda _: done.append("first"))
            second.add_done_callback(lambda _: done.append("second"))
            await asyncio.gather(first, second)
            assert done == ["first", "second"]
            assert librdkafka.committed(kafka.bootstrap, topic, partition) == {partition: 9}
            assert (await anext(it)).offset == 4  # committing moves nothing
        # what another client committed is partition we begin
        other = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
        offset = confluent_kafka.TopicPartition(topic, 0, 6)
        other.commit(offsets=[offset], asynchronous=False)
        other.close()
        async with consumer(kafka, group_id=topic) as it:
            it.subscribe([topic])
            assert (await anext(it)).offset == 6
        assert librdkafka.committed(kafka.bootstrap, topic, partition) == {partition: 7}  # at close

    run(scenario())


def test_reset_policies(kafka: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 1)
    for n in range(4):
        stamp = 1_600_000_000_000 + n * 1000
        librdkafka.produce(kafka.bootstrap, topic, {1: [b"%d" % n]}, timestamp=stamp)

    async def first(policy: str) -> int:
        async with consumer(kafka, auto_offset_reset=policy) as it:
            it.assign([partition])
            return await it.position(partition)

    async def scenario() -> None:
        assert await first("earliest") == 0
        assert await first("latest") == 4
        assert await first("by_timestamp:1600000001500") == 2
        assert await first("by_duration:PT1S") == 4  # nothing is that young: the end
        assert await first("by_duration:P36500D") == 0
        async with consumer(kafka, group_id=topic, auto_offset_reset="none") as it:
            it.assign([partition])
            with pytest.raises(NoOffset) as refused:
                await it.poll(TIMEOUT_S)
            assert refused.value.partitions == (partition,)
            it.seek(partition, 3)
            assert values(await read(it, 1)) == [b"3"]
            it.seek(partition, 99)
            with pytest.raises(OffsetOutOfRange):
                await it.poll(TIMEOUT_S)
        async with consumer(kafka) as it:
            it.assign([partition])
            it.seek(partition, 99)
            assert values(await read(it, 4)) == [b"0", b"1", b"2", b"3"]
            assert await it.beginning_offsets(partition) == {partition: 0}
            assert await it.end_offsets(partition) == {partition: 4}
            found_at = await it.offsets_for_times({partition: 1_600_000_002_000})
            found = found_at[partition]
            assert found is not None
            assert found[:2] == (2, 1_600_000_002_000)

    run(scenario())


def test_seek_and_pause(kafka: Broker, topic: str) -> None:
    a, b = TopicPartition(topic, 0), TopicPartition(topic, 1)
    librdkafka.produce(kafka.bootstrap, topic, {0: numbered(0, 20), 1: numbered(100, 120)})

    async def scenario() -> None:
        async with consumer(kafka, max_poll_records=7) as it:
            it.assign([a, b])
            it.pause(b)
            assert {each.partition for each in await read(it, 20)} == {0}
            assert it.paused() == {b}
            assert await it.poll(0.2) == []
            it.resume(b)
            assert {each.partition for each in await read(it, 20)} == {1}
            it.seek(a, 15)
            assert values(await read(it, 5)) == numbered(15, 20)
            it.seek_to_beginning(b)
            record = await anext(it)
            assert (record.partition, record.offset) == (1, 0)
            it.pause(b)  # what waits of it is not returned
            it.seek(a, 18)
            assert values(await read(it, 2)) == numbered(18, 20)
            it.resume(b)
            assert (await anext(it)).offset == 1
            it.seek_to_end()
            assert [await it.position(each) for each in (a, b)] == [20, 20]
            assert it.high_watermark(a) == 20

    run(scenario())


def test_read_committed(kafka: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic}
    )
    producer.init_transactions(TIMEOUT_S)
    for n, end in enumerate(("commit", "abort", "commit", "abort", "open")):
        producer.begin_transaction()
        for i in range(3):
            producer.produce(topic, b"%d-%d" % (n, i), partition=0)
        producer.flush(TIMEOUT_S)
        if end == "commit":
            producer.commit_transaction(TIMEOUT_S)
        elif end == "abort":
            producer.abort_transaction(TIMEOUT_S)
    stable = [b"%d-%d" % (n, i) for n in (0, 2) for i in range(3)]

    async def scenario() -> None:
        async with consumer(kafka, isolation_level="read_committed") as it:
            it.assign([partition])
            assert values(await read(it, 6)) == stable
            # over the aborted ones and the markers, up to the open transaction
            while await it.position(partition) < 16:
                assert await it.poll(0.1) == []
            assert await it.position(partition) == 16
            assert await it.end_offsets(partition) == {partition: 16}
        async with consumer(kafka, isolation_level="read_uncommitted") as it:
            it.assign([partition])
            assert len(await read(it, 15)) == 15

    run(scenario())
    producer.abort_transaction(TIMEOUT_S)


class RecordingListener:
    """A listener that remembers, and commits when partitions are taken away."""

    def __init__(self, it: Consumer) -> None:
        self.it = it
        self.events: list[tuple[str, frozenset[TopicPartition]]] = []

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        await self.it.commit()
        self.events.append(("revoked", frozenset(partitions)))

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("assigned", frozenset(partitions)))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("lost", frozenset(partitions)))


@asynccontextmanager
async def reading(it: Consumer, into: list[ConsumerRecord]) -> AsyncIterator[None]:
    """Read in the background."""

    async def read() -> None:
        async for record in it:
            into.append(record)

    task = asyncio.create_task(read())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


async def until(so: Callable[[], bool], what: Callable[[], object]) -> None:
    """Wait for other threads and brokers to bring something about."""
    async with asyncio.timeout(TIMEOUT_S):
        while not so():
            await asyncio.sleep(0.02)
    assert so(), what()


def test_a_static_member_comes_back_to_what_it_had(kafka: Broker, topic: str) -> None:
    """Leaving and coming back within the session timeout, it makes nobody else rebalance."""

    async def stay(into: list[ConsumerRecord], other: Consumer) -> frozenset[TopicPartition]:
        async with consumer(kafka, group_id=topic, group_instance_id="one") as it:
            it.subscribe([topic])

            def shared() -> bool:
                return len(it.assignment()) > 0 and len(it.assignment() | other.assignment()) == 3

            async with reading(it, into):
                await until(shared, it.assignment)
                return it.assignment()

    async def scenario() -> None:
        sink: list[ConsumerRecord] = []
        async with consumer(kafka, group_id=topic) as other:
            listener = RecordingListener(other)
            other.subscribe([topic], listener)
            async with reading(other, sink):
                await until(lambda: len(other.assignment()) == 3, other.assignment)
                first = await stay(sink, other)
                before = list(listener.events)
                assert await stay(sink, other) == first
                assert listener.events == before

    run(scenario())


def test_a_pattern_finds_topics_made_later(kafka: Broker) -> None:
    stem = f"pattern-{next(NAMES)}"
    librdkafka.create(kafka.bootstrap, f"{stem}-a", 1)
    librdkafka.produce(kafka.bootstrap, f"{stem}-a", {0: [b"a"]})

    async def scenario() -> None:
        config: dict[str, Setting] = {"metadata_max_age_ms": 500}
        async with consumer(kafka, group_id=stem, **config) as it:
            it.subscribe(re.compile(f"{stem}-."))
            assert values(await read(it, 1)) == [b"a"]
            await asyncio.to_thread(librdkafka.create, kafka.bootstrap, f"{stem}-b", 1)
            await asyncio.to_thread(librdkafka.produce, kafka.bootstrap, f"{stem}-b", {0: [b"b"]})
            assert values(await read(it, 1)) == [b"b"]
            assert it.subscription() == {f"{stem}-a", f"{stem}-b"}

    run(scenario())


def test_a_cancelled_poll_loses_nothing(kafka: Broker, topic: str) -> None:
    librdkafka.produce(kafka.bootstrap, topic, {0: numbered(0, 200)})

    async def scenario() -> None:
        async with consumer(kafka, max_poll_records=3) as it:
            it.assign([TopicPartition(topic, 0)])
            found: list[ConsumerRecord] = []
            polls = 0
            while len(found) < 200:
                task = asyncio.create_task(it.poll())
                polls += 1
                for _ in range(polls % 4):  # from before it began to after it was responded
                    await asyncio.sleep(0)
                if polls % 5:
                    task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    found += task.result()
            assert [each.offset for each in found] == list(range(200))

    run(scenario())


def test_leaving_and_coming_back_in_another_way(kafka: Broker, topic: str) -> None:
    partition = TopicPartition(topic, 2)
    librdkafka.produce(kafka.bootstrap, topic, {2: numbered(0, 5)})

    async def scenario() -> None:
        async with consumer(kafka, group_id=topic) as it:
            with pytest.raises(LocalProtocolError):
                await it.poll()
            it.subscribe([topic])
            assert len(await read(it, 5)) == 5
            with pytest.raises(LocalProtocolError):
                it.assign([partition])
            await it.unsubscribe()
            assert it.assignment() == frozenset()
            assert librdkafka.committed(kafka.bootstrap, topic, partition) == {partition: 5}
            it.assign([partition])
            it.seek(partition, 3)
            assert values(await read(it, 2)) == numbered(3, 5)
            await it.commit({partition: 1})
            assert librdkafka.committed(kafka.bootstrap, topic, partition) == {partition: 1}
        with pytest.raises(ClientClosed):
            await it.poll()

    run(scenario())


def test_a_commit_of_somebody_else_is_refused(kafka: Broker, topic: str) -> None:
    async def scenario() -> None:
        sink: list[ConsumerRecord] = []
        async with consumer(kafka, group_id=topic) as it, consumer(kafka, group_id=topic) as other:
            it.subscribe([topic])
            async with reading(it, sink):
                await until(lambda: len(it.assignment()) == 3, it.assignment)
                partition = TopicPartition(topic, 0)
                other.assign([partition])
                with pytest.raises(CommitFailed) as found:
                    await other.commit({partition: 5}, timeout_s=TIMEOUT_S)
                assert found.value.partitions == (partition,)

    run(scenario())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_authenticated(kafka: Broker, topic: str, mechanism: str) -> None:
    librdkafka.produce(kafka.bootstrap, topic, {0: [b"secret"]})

    async def read(password: str) -> list[ConsumerRecord]:
        it = Consumer(
            {
                "bootstrap.servers": kafka.sasl_bootstrap,
                "group.id": f"{topic}-{mechanism}",
                "auto.offset.reset": "earliest",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": USER,
                "sasl.password": password,
            }
        )
        async with it:
            it.subscribe([topic])
            return await it.poll(TIMEOUT_S)

    async def scenario() -> None:
        assert values(await read(PASSWORD)) == [b"secret"]
        with pytest.raises(Exception, match=r"(?i)authentication failed"):
            await read("wrong")

    run(scenario())
