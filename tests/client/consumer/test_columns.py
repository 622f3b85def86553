"""Fetched records as columns: those of an ordinary poll, in order, with the same errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import ConsumerRecord, FetchFailed, events
from kafkawire.client.consumer.arrow import SCHEMA, ArrowBatches
from kafkawire.client.consumer.columns import FetchedColumns
from kafkawire.client.consumer.fetch.completed_fetch import COLUMN_BYTES, CompletedFetch
from kafkawire.client.consumer.offsets.partition_state import Position
from kafkawire.messages.fetch_response import AbortedTransaction, PartitionData
from kafkawire.records import BatchBuilder, Compression, Record
from kafkawire.records.replaced_text import header_row
from tests.records.drawn import Batch, batches

from .test_buffers import WHERE, WRITES, Log
from .test_fetcher import Reader, batch, reader_of_two_batches

EVERYTHING = 1_000_000


def row(record: ConsumerRecord) -> dict[str, Any]:
    """Return the row that a record has in a batch."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp < 0 else record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": [header_row(*header) for header in record.headers],
    }


def rows(part: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch, with timestamps in milliseconds."""
    assert part.schema == SCHEMA
    part.validate(full=True)
    micros = part.column("timestamp").cast(pa.int64()).to_pylist()
    part = part.drop_columns("timestamp")
    return [
        one | {"timestamp": None if time is None else time // 1000}
        for one, time in zip(part.to_pylist(), micros, strict=True)
    ]


def read_records(fetch: CompletedFetch) -> tuple[list[dict[str, Any]], str, Position]:
    """Read records one by one: them, the error, and the position then."""
    taken: list[dict[str, Any]] = []
    while not fetch.consumed:
        try:
            taken += map(row, fetch.take(EVERYTHING))
        except FetchFailed as error:
            return taken, str(error), fetch.position
    return taken, "", fetch.position


def read_columns(fetch: CompletedFetch, most: int) -> tuple[list[dict[str, Any]], str, Position]:
    """Read columns: the same three."""
    arrow = ArrowBatches()
    taken: list[dict[str, Any]] = []
    while not fetch.consumed:
        try:
            columns = fetch.take_columns(most)
        except FetchFailed as error:
            return taken, str(error), fetch.position
        if columns is not None:
            part = arrow.batch(columns)
            assert 0 < part.num_rows <= most
            assert columns.next_position == fetch.position
            taken += rows(part)
            assert fetch.position.offset > taken[-1]["offset"]
    return taken, "", fetch.position


def assert_same(
    data: bytes, start: int, most: int, aborted: list[AbortedTransaction] | None = None
) -> None:
    read = read_records(CompletedFetch(WHERE, Position(start), data, aborted))
    assert read_columns(CompletedFetch(WHERE, Position(start), data, aborted), most) == read


@given(
    writes=WRITES,
    start=st.integers(0, 12),
    most=st.sampled_from([1, 2, 5, EVERYTHING]),
    committed=st.booleans(),
)
def test_transactions_and_gaps(
    writes: list[tuple[int, str, int, int, Compression]], start: int, most: int, committed: bool
) -> None:
    log = Log(writes)
    assert_same(log.data, start, most, log.aborted if committed else None)


@given(
    drawn=st.lists(batches(), max_size=4),
    skipped=st.integers(0, 9),
    most=st.sampled_from([1, 3, EVERYTHING]),
    damage=st.none() | st.tuples(st.integers(0, 2000), st.integers(1, 255)),
    cut=st.integers(0, 20),
)
def test_batches_of_every_kind_also_damaged_ones(
    drawn: list[Batch], skipped: int, most: int, damage: tuple[int, int] | None, cut: int
) -> None:
    """Whose error then is that of the records."""
    drawn.sort(key=lambda each: each.base_offset)
    data = bytearray(b"".join(each.encode() for each in drawn))
    if damage is not None and data:
        data[damage[0] % len(data)] ^= damage[1]
    offsets = [record.offset for each in drawn for record in each.records]
    start = offsets[min(skipped, len(offsets) - 1)] if offsets else 0
    assert_same(bytes(data[: len(data) - cut]), start, most)


def test_a_corrupt_batch_is_raised_after_the_records_before_it() -> None:
    log = Log([(-1, "write", 2, 0, Compression.NONE)] * 3)
    data = bytearray(log.data)
    data[2 * len(data) // 3 - 2] ^= 1
    fetch = CompletedFetch(WHERE, Position(0), bytes(data))
    columns = fetch.take_columns(EVERYTHING)
    assert columns is not None
    assert columns.rows == 2
    for _ in range(2):  # and it is never passed over
        with pytest.raises(FetchFailed, match=r"offset 2 on: .* checksum"):
            fetch.take_columns(EVERYTHING)


def test_batches_that_decompress_to_much_come_one_by_one() -> None:
    builders = [BatchBuilder(base_offset=at, compression=Compression.ZSTD) for at in range(3)]
    for at, builder in enumerate(builders):
        builder.append(None, bytes(COLUMN_BYTES), offset=at)
    data = b"".join(builder.build() for builder in builders)
    assert len(data) < COLUMN_BYTES / 100
    fetch = CompletedFetch(WHERE, Position(0), data)
    for at in range(3):
        columns = fetch.take_columns(EVERYTHING)
        assert columns is not None
        assert (columns.position.offset, columns.rows) == (at, 1)
        assert sum(map(len, columns.columns.buffers)) < 2 * COLUMN_BYTES
    assert fetch.consumed


def test_no_object_is_made_for_each_record() -> None:
    """A part of a fetch is a slice of what was converted once."""
    builder = BatchBuilder()
    builder.extend([Record(at, 5, b"key", b"value", ()) for at in range(100)])
    fetch = CompletedFetch(WHERE, Position(0), builder.build())
    arrow = ArrowBatches()
    parts = [arrow.batch(columns) for columns in iter(lambda: fetch.take_columns(30), None)]
    assert [part.num_rows for part in parts] == [30, 30, 30, 10]
    assert len({part.column("value").buffers()[2].address for part in parts}) == 1


# -- polls


def poll(reader: Reader, max_records: int | None = None) -> list[FetchedColumns]:
    reader.effects.clear()
    reader.send(events.Poll(max_records, columns=True))
    reader.send(events.StopPolling())
    return [each.columns for each in reader.effects if isinstance(each, events.DeliverColumns)]


def test_a_poll_returns_columns_and_fetches_on() -> None:
    reader = reader_of_two_batches()
    [columns] = poll(reader)
    assert columns.rows == 5
    assert reader.requested(1) == {0: 5}
    assert reader.consumer.positions.position(columns.partition) == Position(5)


def test_a_user_who_changes_from_records_to_columns_and_back_misses_nothing() -> None:
    reader = reader_of_two_batches()
    assert reader.poll(1) == [(0, 0)]
    assert poll(reader) == []  # what is left was decoded as records
    reader.respond(1)  # of the fetch ahead
    assert reader.requested(1) == {0: 1}
    data = batch(0, 2) + batch(2, 3)
    reader.respond(1, PartitionData(partition_index=0, records=data, high_watermark=10))
    [columns] = poll(reader, 2)
    assert (columns.position.offset, columns.rows) == (1, 2)
    assert reader.poll() == []
    reader.respond(1)
    assert reader.requested(1) == {0: 3}
    reader.respond(1, PartitionData(partition_index=0, records=data, high_watermark=10))
    assert reader.poll() == [(0, 3), (0, 4)]


@pytest.mark.parametrize("sought", [False, True])
def test_columns_that_are_returned_come_again_unless_the_user_seeks(sought: bool) -> None:
    reader = reader_of_two_batches()
    [columns] = poll(reader)
    if sought:
        reader.send(events.Seek(columns.partition, 7))
    reader.send(events.ReturnColumns(columns))
    position = reader.consumer.positions.position(columns.partition)
    assert position is not None
    assert position.offset == (7 if sought else 0)
    reader.respond(1)
    assert reader.requested(1) == {0: position.offset}
