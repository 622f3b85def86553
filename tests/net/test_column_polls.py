"""Columns from the asyncio Consumer: its records, as batches, and what a commit covers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from kafkawire import blocking
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition
from kafkawire.client.failures import ClientClosed
from kafkawire.errors import OutOfRange
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.values import ValueDecoder, ValueFormat

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 2})]
PARTITIONS = [TopicPartition("t", number) for number in range(2)]


def settings(broker: ServerThread, **more: Setting) -> dict[str, Setting]:
    """Return settings of a consumer: Kafka's names have dots."""
    return {
        "bootstrap.servers": broker.bootstrap,
        "auto.offset.reset": "earliest",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@asynccontextmanager
async def assigned(broker: ServerThread, **more: Setting) -> AsyncIterator[Consumer]:
    """Open a consumer of all partitions from their beginning."""
    async with Consumer(settings(broker, **more)) as consumer:
        consumer.assign(PARTITIONS)
        yield consumer


async def write(broker: ServerThread, records: int, **more: Setting) -> None:
    """Write records in turn to both partitions: keys, nulls, headers."""
    config = {name.replace("_", "."): value for name, value in more.items()}
    async with Producer({"bootstrap.servers": broker.bootstrap, **config}) as producer:
        for number in range(records):
            await producer.send(
                "t",
                None if number % 5 == 4 else b'{"n":%d}' % number,
                key=b"k%d" % number if number % 3 else None,
                partition=number % 2,
                headers=(("h", b"x" * number), ("n", None)) if number % 4 == 0 else (),
                timestamp=1_700_000_000_000 + number,
            )


def as_rows(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            one["topic"],
            one["partition"],
            one["offset"],
            int(one["timestamp"].timestamp() * 1000),
            one["key"],
            one["value"],
            tuple((header["key"], header["value"]) for header in one["headers"]),
        )
        for batch in batches
        for one in batch.to_pylist()
    )


async def read_records(consumer: Consumer, number: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    while len(records) < number:
        records += await consumer.poll()
    return records


async def read_batches(
    consumer: Consumer, number: int, max_records: int | None = None
) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = []
    async for batch in consumer.batches(max_records=max_records):
        batches.append(batch)
        if sum(each.num_rows for each in batches) >= number:
            break
    return batches


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_batches_have_the_records_of_polls(kafka_broker: ServerThread, codec: str) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 40, compression_type=codec)
        async with assigned(kafka_broker) as consumer:
            records = await read_records(consumer, 40)
            consumer.seek_to_beginning()
            batches = await read_batches(consumer, 40, max_records=7)
            assert max(batch.num_rows for batch in batches) <= 7
            assert as_rows(batches) == sorted(record[:7] for record in records)
            consumed = consumer.metrics()
        assert {
            value for name, value in consumed.items() if name.name == "records-consumed-total"
        } >= {80.0}

    asyncio.run(scenario())


def test_records_of_aborted_transactions_are_left_out(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        config: dict[str, Setting] = {
            "bootstrap.servers": kafka_broker.bootstrap,
            "transactional.id": "x",
        }
        async with Producer(config) as producer:
            for value, end in [
                (b"a", producer.commit),
                (b"b", producer.abort),
                (b"c", producer.commit),
                (b"d", producer.abort),
                (b"e", producer.commit),
            ]:
                await producer.begin()
                await producer.deliver("t", value, partition=0)
                await end()
        async with assigned(kafka_broker, isolation_level="read_committed") as consumer:
            batches = await read_batches(consumer, 3)
            values = [value for each in batches for value in each.column("value").to_pylist()]
            assert values == [b"a", b"c", b"e"]
            [end_offset] = (await consumer.end_offsets(PARTITIONS[0])).values()
            assert await consumer.position(PARTITIONS[0]) == end_offset

    asyncio.run(scenario())


def test_a_commit_covers_the_batches_that_were_returned(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 20)
        group = settings(kafka_broker, group_id="g", enable_auto_commit=False)
        async with Consumer(group) as consumer:
            consumer.subscribe(["t"])
            batch = await consumer.poll_batch(max_records=3)
            assert batch is not None
            await consumer.commit()
        async with Consumer(group) as consumer:
            consumer.subscribe(["t"])
            batches = [batch, *await read_batches(consumer, 17)]
        assert [row[1:3] for row in as_rows(batches)] == [(p, o) for p in (0, 1) for o in range(10)]

    asyncio.run(scenario())


def test_a_cancelled_poll_loses_no_batch(kafka_broker: ServerThread) -> None:
    class Cancelling(ValueDecoder):
        """Lets the poll be cancelled while values are decoded."""

        def decode(self, *args: Any, **more: Any) -> Any:
            loops[0].call_soon_threadsafe(polls[0].cancel)
            return super().decode(*args, **more)

    loops: list[asyncio.AbstractEventLoop] = []
    polls: list[asyncio.Task[pa.RecordBatch | None]] = []

    async def scenario() -> None:
        loops.append(asyncio.get_running_loop())
        await write(kafka_broker, 20)
        async with assigned(kafka_broker) as consumer:
            decoder = Cancelling(ValueFormat.JSON)
            polls.append(asyncio.ensure_future(consumer.poll_batch(values=decoder)))
            with pytest.raises(asyncio.CancelledError):
                await polls[0]
            assert len(as_rows(await read_batches(consumer, 20))) == 20

    asyncio.run(scenario())


def test_values_are_decoded_beside_the_bytes(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        await write(kafka_broker, 10)
        async with assigned(kafka_broker) as consumer:
            batch = await consumer.poll_batch(values=ValueDecoder(ValueFormat.JSON))
            assert batch is not None
            for value, shown in zip(
                batch.column("value").to_pylist(),
                batch.column("value_decoded").to_pylist(),
                strict=True,
            ):
                assert (value is None) == (shown is None)
                assert value is None or shown["value"].encode() == value

    asyncio.run(scenario())


def test_a_poll_without_records_ends_with_its_timeout(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with assigned(kafka_broker) as consumer:
            assert await consumer.poll_batch(0.01) is None
            with pytest.raises(OutOfRange, match="max_records"):
                await consumer.poll_batch(max_records=0)
            polling = asyncio.ensure_future(consumer.poll_batch())
            await asyncio.sleep(0)
            await consumer.close()
            with pytest.raises(ClientClosed):
                await polling

    asyncio.run(scenario())


def test_columns_in_threads(kafka_broker: ServerThread) -> None:
    asyncio.run(write(kafka_broker, 20))
    with blocking.Consumer(settings(kafka_broker)) as consumer:
        consumer.assign(PARTITIONS)
        batches = consumer.batches()
        taken = [next(batches)]
        while sum(each.num_rows for each in taken) < 20:
            taken.append(next(batches))
        assert len(as_rows(taken)) == 20
        assert consumer.poll_batch(0.01) is None
