"""What is written is read again: any records, every magic and codec, mixed in one field."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import WireError
from kafkawire.records import BatchBuilder, Record, RecordBatches, reencode
from tests.fuzzing import examples

from .drawn import BLOBS, HEADERS, INT64, Batch, batches

EXAMPLES = settings(max_examples=examples(50), deadline=None)


@pytest.mark.fuzz
@EXAMPLES
@given(st.lists(batches(), max_size=4))
def test_records_of_a_field(drawn: list[Batch]) -> None:
    field = RecordBatches(b"".join(batch.encode() for batch in drawn))
    expected = [record for batch in drawn for record in batch.records]
    assert list(field.records()) == expected
    rows = field.columns().to_arrow().to_pylist()
    assert [
        Record(
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in rows
    ] == expected
    assert field.cut_tail == 0


@pytest.mark.fuzz
@EXAMPLES
@given(batches(), st.integers(0, 8))
def test_rows_of_a_batch_are_its_records_from_an_offset_on(drawn: Batch, skipped: int) -> None:
    first = [*(record.offset for record in drawn.records), 2**62][: skipped + 1][-1]
    found = []
    faults: list[WireError] = []
    for batch in RecordBatches(drawn.encode()):
        after = batch.timestamp_type, batch.partition_leader_epoch
        rows = batch.rows("t", 3, first, faults)
        assert all(type(row) is tuple and row[:2] == ("t", 3) and row[7:] == after for row in rows)
        found += [Record(*row[2:7]) for row in rows]
    assert (found, faults) == ([each for each in drawn.records if each.offset >= first], [])


@pytest.mark.fuzz
@EXAMPLES
@given(batches())
def test_offsets_of_a_batch(drawn: Batch) -> None:
    found = list(RecordBatches(drawn.encode()))
    assert found[0].base_offset == drawn.base_offset
    assert found[-1].last_offset == drawn.records[-1].offset
    assert all(batch.crc_valid for batch in found)


@pytest.mark.fuzz
@EXAMPLES
@given(batches(magic=2))
def test_uncompressed_batch_is_written_back_to_the_byte(drawn: Batch) -> None:
    data = drawn._replace(compression=drawn.compression.NONE).encode()
    (batch,) = RecordBatches(data)
    assert reencode(batch) == data
    recompressed = RecordBatches(reencode(batch, drawn.compression))
    assert list(recompressed.records()) == drawn.records


@pytest.mark.fuzz
@EXAMPLES
@given(st.lists(st.tuples(BLOBS, BLOBS, INT64, HEADERS), max_size=6), st.integers(-(2**40), 2**40))
def test_builder_knows_its_size(
    drawn: list[tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]],
    base_timestamp: int,
) -> None:
    builder = BatchBuilder(base_timestamp=base_timestamp)
    for key, value, timestamp, headers in drawn:
        timestamp //= 2  # so that no delta leaves an int64
        grown = builder.size + builder.size_of(key, value, timestamp, headers)
        builder.append(key, value, timestamp, headers)
        assert builder.size == grown
    data = builder.build()
    assert len(data) == builder.size
    assert [(r.key, r.value, r.timestamp, r.headers) for r in RecordBatches(data).records()] == [
        (key, value, timestamp // 2, headers) for key, value, timestamp, headers in drawn
    ]


@given(INT64, INT64, BLOBS, HEADERS)
def test_records_pickle(
    offset: int, timestamp: int, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    record = Record(offset, timestamp, None, value, headers)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(record, protocol)) == record
