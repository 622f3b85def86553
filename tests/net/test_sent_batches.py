"""`send_batch`: the records of a batch are those that `send` would send, with the same results."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from kafkawire import ErrorCode, blocking
from kafkawire.client.config import Setting
from kafkawire.client.consumer import ConsumerRecord, TopicPartition
from kafkawire.client.failures import BrokerError, ClientClosed, RequestFailed
from kafkawire.errors import InvalidValue, LocalProtocolError, OutOfRange
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import ReplacedText

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 3})]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS = 500


def producer(broker: ServerThread, **more: Setting) -> Producer:
    config = {name.replace("_", "."): value for name, value in more.items()}
    return Producer({"bootstrap.servers": broker.bootstrap, **config})


async def read(broker: ServerThread, number: int, **more: Setting) -> list[ConsumerRecord]:
    """Read the records of all partitions, by partition and offset."""
    config = {name.replace("_", "."): value for name, value in more.items()}
    records: list[ConsumerRecord] = []
    async with Consumer(
        {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest", **config}
    ) as consumer:
        consumer.assign([TopicPartition("t", partition) for partition in range(3)])
        while len(records) < number:
            records += await consumer.poll()
    return sorted(records, key=lambda each: each[:3])


def example() -> pa.RecordBatch:
    """Make a batch of all columns, with nulls; it is a slice, as any may be."""
    rows = range(ROWS + 20)
    header = {"key": "h", "value": b"x"}
    whole = pa.record_batch(
        {
            "value": pa.array([None if n % 7 == 0 else b"value %d" % n for n in rows], pa.binary()),
            "key": pa.array([None if n % 5 == 0 else f"k{n}" for n in rows], pa.large_string()),
            "partition": pa.array([None if n % 3 == 0 else n % 3 for n in rows], pa.int8()),
            "timestamp": pa.array(
                [None if n % 4 == 0 else datetime.fromtimestamp(n, UTC) for n in rows],
                pa.timestamp("us", "UTC"),
            ),
            "headers": pa.array([[header] * (n % 3) if n % 50 < 3 else [] for n in rows], HEADERS),
        }
    )
    return whole.slice(10, ROWS)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_records_and_where_they_are(kafka_broker: ServerThread, codec: str) -> None:
    async def scenario() -> None:
        batch = example()
        async with producer(kafka_broker, compression_type=codec, batch_size=2000) as it:
            result = await (await it.send_batch("t", batch))
        assert result.num_rows == ROWS
        records = {each[1:3]: each for each in await read(kafka_broker, ROWS)}
        sent = zip(batch.to_pylist(), result.to_pylist(), strict=True)
        for row, place in sent:
            record = records.pop((place["partition"], place["offset"]))
            assert record.value == row["value"]
            assert record.key == (None if row["key"] is None else row["key"].encode())
            assert row["partition"] in (None, record.partition)
            if row["timestamp"] is not None:
                assert record.timestamp == row["timestamp"].timestamp() * 1000
            assert record.headers == tuple((each["key"], each["value"]) for each in row["headers"])
        assert not records

    asyncio.run(scenario())


def test_keys_have_the_partitions_of_single_records(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        keys = [b"key %d" % number for number in range(30)]
        async with producer(kafka_broker) as it:
            single = [await it.deliver("t", b"", key=key) for key in keys]
            result = await (await it.send_batch("t", pa.record_batch({"key": keys})))
        partitions = result.column("partition").to_pylist()
        assert partitions == [each.partition for each in single]

    asyncio.run(scenario())


def test_what_was_consumed_can_be_sent(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        headers = ((ReplacedText(b"caf\xe9"), b"1"), ("n", None))
        async with producer(kafka_broker) as it:
            await it.deliver("t", b"v", key=b"k", partition=0, headers=headers, timestamp=5000)
            async with Consumer({"bootstrap.servers": kafka_broker.bootstrap}) as consumer:
                consumer.assign([TopicPartition("t", 0)])
                consumer.seek(TopicPartition("t", 0), 0)
                batch = await consumer.poll_batch()
            assert batch is not None
            await (await it.send_batch("t", batch.drop_columns(["topic", "offset"])))
        first, second = await read(kafka_broker, 2)
        assert second == first._replace(offset=1)

    asyncio.run(scenario())


def test_a_transaction_has_all_of_a_batch_or_nothing(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker, transactional_id="x") as it:
            with pytest.raises(LocalProtocolError):
                await it.send_batch("t", pa.record_batch({"value": [b"0"]}))
            for values, end in (([b"1", b"2"], it.abort), ([b"3", b"4"], it.commit)):
                await it.begin()
                await it.send_batch("t", pa.record_batch({"value": values, "partition": [0, 1]}))
                await end()
        records = await read(kafka_broker, 2, isolation_level="read_committed")
        assert [each.value for each in records] == [b"3", b"4"]

    asyncio.run(scenario())


def test_the_first_row_that_failed_is_named(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker, max_request_size=2000, max_block_ms=2000) as it:
            values = [b"1", bytes(3000), b"3", bytes(4000)]
            future = await it.send_batch("t", pa.record_batch({"value": values}))
            with pytest.raises(BrokerError, match="up to 3036 bytes") as caught:
                await future
            assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
            assert caught.value.__notes__ == ["row 1 of the batch; 2 of 4 records failed"]
            missing = pa.record_batch({"value": [b"4"], "partition": [7]})
            with pytest.raises(RequestFailed, match="no partition 7"):
                await (await it.send_batch("t", missing))
        assert [each.value for each in await read(kafka_broker, 2)] == [b"1", b"3"]

    asyncio.run(scenario())


def test_records_before_a_cancelled_row_are_sent(kafka_broker: ServerThread) -> None:
    """And a later batch has results of its own."""

    async def scenario() -> None:
        async with producer(kafka_broker, max_block_ms=60_000) as it:
            missing = pa.record_batch({"value": [b"1", b"2", b"3"], "partition": [0, 0, 7]})
            sending = asyncio.ensure_future(it.send_batch("t", missing))
            assert [each.value for each in await read(kafka_broker, 2)] == [b"1", b"2"]
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            single = it.deliver("t", b"4", partition=0)
            batch = pa.record_batch({"value": [b"5"], "partition": [0]})
            where, future = await asyncio.gather(single, it.send_batch("t", batch))
            offsets = {where.offset, *(await future).column("offset").to_pylist()}
            assert offsets == {2, 3}

    asyncio.run(scenario())


def test_without_acknowledgements_offsets_are_unknown(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker, acks=0, enable_idempotence=False) as it:
            result = await (await it.send_batch("t", pa.record_batch({"value": [b"1", b"2"]})))
        assert result.column("offset").to_pylist() == [-1, -1]

    asyncio.run(scenario())


def test_an_empty_batch_and_a_closed_producer(kafka_broker: ServerThread) -> None:
    async def scenario() -> None:
        it = producer(kafka_broker)
        async with it:
            empty = pa.record_batch({"value": pa.array([], pa.binary())})
            assert (await (await it.send_batch("t", empty))).num_rows == 0
        with pytest.raises(ClientClosed):
            await it.send_batch("t", example())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        ({"values": [b"1"]}, InvalidValue, r"batch: unknown column 'values': expected key, value"),
        ({"value": [1]}, InvalidValue, r"batch\.value: expected binary or string, got int64"),
        ({"value": [[b"1"]]}, InvalidValue, r"batch\.value: expected binary or string"),
        ({"partition": ["a"]}, InvalidValue, r"batch\.partition: expected integer, got string"),
        ({"partition": [-1]}, OutOfRange, r"batch\.partition: -1 is negative"),
        ({"partition": [1 << 40]}, OutOfRange, r"batch\.partition: "),
        ({"timestamp": [1.5]}, InvalidValue, r"batch\.timestamp: expected timestamp or integer"),
        ({"timestamp": [-5]}, OutOfRange, r"batch\.timestamp: -5 is negative"),
        ({"headers": [b"1"]}, InvalidValue, r"batch\.headers: expected list of structs"),
        ({"headers": [[{"key": "k"}]]}, InvalidValue, r"batch\.headers: expected list of structs"),
        (
            {"headers": [[{"key": None, "value": b""}]]},
            InvalidValue,
            r"batch\.headers: a header without a key",
        ),
    ],
)  # fmt: skip
def test_invalid_columns(
    kafka_broker: ServerThread, columns: dict[str, Any], error: type[Exception], reason: str
) -> None:
    async def scenario() -> None:
        async with producer(kafka_broker) as it:
            with pytest.raises(error, match=reason):
                await it.send_batch("t", pa.record_batch(columns))
            with pytest.raises(InvalidValue, match=r"expected pyarrow\.RecordBatch, got dict"):
                await it.send_batch("t", columns)

    asyncio.run(scenario())


def test_batches_from_threads(kafka_broker: ServerThread) -> None:
    with blocking.Producer({"bootstrap.servers": kafka_broker.bootstrap}) as it:
        future = it.send_batch("t", pa.record_batch({"value": [b"1", b"2"]}))
        assert future.result(30).num_rows == 2
