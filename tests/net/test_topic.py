"""Whole topics as columns: between which offsets, in parallel, and what ends reading."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import kafkawire
from kafkawire.client.config import Setting
from kafkawire.client.failures import BrokerError, ConfigurationError
from kafkawire.errors import InvalidValue, QueryError
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread
from kafkawire.net.topic import Topic
from kafkawire.values import ValueDecoder, ValueFormat

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(topics={"t": 3, "empty": 1})]
TIME = 1_700_000_000_000
COUNT = 60


def topic(broker: ServerThread, name: str = "t", **options: Any) -> Topic:
    return kafkawire.open_topic(name, bootstrap=broker.bootstrap, **options)


def write(broker: ServerThread, records: int = COUNT, **config: Setting) -> None:
    """Write records in turn to all partitions: partition 0 has 0, 3, 6, ..."""

    async def send() -> None:
        async with Producer({"bootstrap.servers": broker.bootstrap, **config}) as producer:
            for number in range(records):
                time = TIME + 1000 * number
                await producer.send("t", b"%d" % number, partition=number % 3, timestamp=time)

    asyncio.run(send())


def numbers(rows: pa.Table) -> list[int]:
    return sorted(map(int, rows.column("value").to_pylist()))


@pytest.mark.parametrize("threads", [1, 2, None])
def test_all_records_in_the_order_of_their_partitions(
    kafka_broker: ServerThread, threads: int | None
) -> None:
    write(kafka_broker)
    rows = topic(kafka_broker, threads=threads).to_arrow()
    assert numbers(rows) == list(range(COUNT))
    for partition in range(3):
        part = rows.filter(pa.compute.equal(rows.column("partition"), partition))
        assert part.column("offset").to_pylist() == list(range(COUNT // 3))
        assert part.column("value").to_pylist() == [b"%d" % n for n in range(partition, COUNT, 3)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"start": 18}, range(54, 60)),
        ({"end": 2}, range(6)),
        ({"start": -2, "end": -1}, range(54, 57)),
        ({"start": datetime.fromtimestamp((TIME + 50_000) / 1000, UTC)}, range(50, 60)),
        ({"end": datetime.fromtimestamp((TIME + 7_000) / 1000, UTC)}, range(7)),
        ({"start": 500}, range(0)),
        ({"start": 5, "end": 5}, range(0)),
        ({"start": -500, "end": 500}, range(60)),
        ({"partitions": [1]}, range(1, 60, 3)),
    ],
    ids=str,
)
def test_bounds(kafka_broker: ServerThread, options: dict[str, Any], expected: range) -> None:
    write(kafka_broker)
    assert numbers(topic(kafka_broker, **options).to_arrow()) == list(expected)


def test_records_that_arrive_while_it_is_read_are_left_out(kafka_broker: ServerThread) -> None:
    write(kafka_broker)
    batches = topic(kafka_broker).batches()
    taken = [next(batches)]
    write(kafka_broker)
    taken += batches
    assert numbers(pa.Table.from_batches(taken)) == list(range(COUNT))
    assert topic(kafka_broker).to_arrow().num_rows == 2 * COUNT, "it is read again"


def test_an_end_among_records_of_an_aborted_transaction(kafka_broker: ServerThread) -> None:
    config: dict[str, Setting] = {
        "bootstrap.servers": kafka_broker.bootstrap,
        "transactional.id": "x",
    }

    async def send() -> None:
        async with Producer(config) as producer:
            for value, end in ((b"1", producer.commit), (b"2", producer.abort)):
                await producer.begin()
                await producer.deliver("t", value, partition=0)
                await end()

    asyncio.run(send())
    committed: dict[str, Setting] = {"isolation.level": "read_committed"}
    assert numbers(topic(kafka_broker, config=committed).to_arrow()) == [1]
    assert numbers(topic(kafka_broker).to_arrow()) == [1, 2]


def test_other_forms(kafka_broker: ServerThread) -> None:
    write(kafka_broker)
    with topic(kafka_broker, values=ValueDecoder(ValueFormat.JSON)) as it:
        assert len(it.to_pandas()) == COUNT
        assert it.to_polars().height == COUNT
        assert sum(1 for _ in it) == COUNT
        [row] = it.sql("SELECT count(*) AS number, max(value_decoded.value) AS last FROM records")
        assert row == {"number": COUNT, "last": "9"}
        assert len(it.sql('WHERE partition = 1 AND "offset" < 3')) == 3
        with pytest.raises(QueryError, match="exchanges"):
            it.sql("FROM exchanges")


def test_a_topic_without_records(kafka_broker: ServerThread) -> None:
    rows = topic(kafka_broker, "empty").to_arrow()
    assert rows.num_rows == 0
    assert rows.schema.names[:3] == ["topic", "partition", "offset"]


def test_a_reader_that_stops_leaves_no_threads(kafka_broker: ServerThread) -> None:
    write(kafka_broker)
    batches: Any = topic(kafka_broker).batches()
    next(batches)
    batches.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("kafkawire-topic")]


def test_errors(kafka_broker: ServerThread) -> None:
    with pytest.raises(BrokerError, match=r"UNKNOWN_TOPIC_OR_PARTITION.*nowhere"):
        topic(kafka_broker, "nowhere")
    with pytest.raises(InvalidValue, match="partitions: t has 3 partitions, and not 7"):
        topic(kafka_broker, partitions=[1, 7])
    with pytest.raises(InvalidValue, match="start: expected int or datetime, got str"):
        topic(kafka_broker, start="yesterday")
    with pytest.raises(InvalidValue, match="threads"):
        topic(kafka_broker, threads=0)
    with pytest.raises(ConfigurationError, match="isolation"):
        topic(kafka_broker, config={"isolation.levl": "read_committed"})


def test_an_error_of_a_thread_is_raised(kafka_broker: ServerThread) -> None:
    write(kafka_broker)

    class Broken(ValueDecoder):
        def decode(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError("decoder")

    with pytest.raises(ZeroDivisionError, match="decoder"):
        topic(kafka_broker, values=Broken(ValueFormat.JSON)).to_arrow()
