"""The builder: header fields, ranges, what it refuses, and building twice."""

from __future__ import annotations

import pytest

from kafkawire.errors import InvalidValue, OutOfRange
from kafkawire.records import (
    Batch,
    BatchBuilder,
    Compression,
    Record,
    RecordBatches,
    TimestampType,
    reencode,
)


def only(data: bytes) -> Batch:
    """Read the only batch."""
    (batch,) = RecordBatches(data)
    return batch


def test_header_fields() -> None:
    builder = BatchBuilder(
        base_offset=100,
        compression=Compression.ZSTD,
        producer_id=2**40,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        partition_leader_epoch=9,
        transactional=True,
    )
    builder.append(None, b"a", 1000)
    builder.append(None, b"b", 900, offset=105)
    batch = only(builder.build(last_offset=110))
    assert batch.compression == Compression.ZSTD
    assert (batch.producer_id, batch.producer_epoch) == (2**40, 3)
    assert (batch.base_offset, batch.last_offset, batch.last_offset_delta) == (100, 110, 10)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1000)
    assert (batch.partition_leader_epoch, batch.records_count) == (9, 2)
    assert (batch.transactional, batch.control, batch.delete_horizon_ms) == (True, False, None)
    assert batch.timestamp_type == TimestampType.CREATE_TIME
    # sequences wrap to 0 after the largest int32
    assert [batch.sequence(offset) for offset in (100, 101, 105)] == [2**31 - 1, 0, 4]
    assert batch.last_sequence == 9
    assert batch.crc == batch.compute_crc()
    assert batch.batch_length == batch.size - 12


def test_empty_batch_keeps_its_range() -> None:
    for codec in Compression:
        batch = only(BatchBuilder(base_offset=50, compression=codec).build(last_offset=59))
        assert (batch.size, batch.records_count) == (61, 0)
        assert (batch.base_offset, batch.last_offset) == (50, 59)
        assert batch.records() == []
        assert len(batch.columns()) == 0
        assert reencode(batch) == batch.data


def test_log_append_time_stands_in_for_timestamps() -> None:
    builder = BatchBuilder(log_append_time=5000)
    builder.append(None, b"a", 1000)
    builder.append(None, b"b", 1001)
    batch = only(builder.build())
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 5000)
    assert [record.timestamp for record in batch] == [5000, 5000]
    assert batch.columns().to_arrow()["timestamp"].to_pylist() == [5000, 5000]
    assert [record.timestamp for record in batch.records(as_created=True)] == [1000, 1001]
    assert reencode(batch) == batch.data


def test_delete_horizon_takes_the_base_timestamps_place() -> None:
    builder = BatchBuilder(delete_horizon_ms=9000)
    builder.append(b"k", None, 1000)
    batch = only(builder.build())
    assert (batch.delete_horizon_ms, batch.base_timestamp) == (9000, 9000)
    assert batch.records() == [Record(0, 1000, b"k", None)]


def test_building_does_not_end_it() -> None:
    builder = BatchBuilder()
    builder.append(None, b"a", 1)
    assert builder.build() == builder.build()
    builder.append(None, b"b", 2)
    assert [record.value for record in only(builder.build())] == [b"a", b"b"]


def test_what_does_not_fit() -> None:
    builder = BatchBuilder(base_offset=10, base_timestamp=-(2**62))
    for offset in (10 + 2**31, 9 - 2**31):
        with pytest.raises(OutOfRange, match="offset"):
            builder.append(None, None, offset=offset)
    for timestamp in (2**63, -(2**63) - 1, 2**62 + 2**62):
        with pytest.raises(OutOfRange, match="timestamp"):
            builder.append(None, None, timestamp)
    with pytest.raises(InvalidValue, match="UTF-8"):
        builder.append(None, None, 0, (("\ud800", None),))
    assert (builder.count, builder.size) == (0, 61)
    for field in ("producer_epoch", "base_sequence", "producer_id", "partition_leader_epoch"):
        builder = BatchBuilder()
        setattr(builder, field, 2**63)
        with pytest.raises(OutOfRange, match="batch header"):
            builder.build()


def test_records_are_values() -> None:
    record = Record(1, 2, b"k", None, (("h", None),))
    assert record == Record(1, 2, b"k", None, (("h", None),))
    assert record != Record(1, 2, b"k", b"", (("h", None),))
    assert record != "record"
    assert repr(record) == (
        "Record(offset=1, timestamp=2, key=b'k', value=None, headers=(('h', None),))"
    )
    match record:
        case Record(offset, _, key):
            assert (offset, key) == (1, b"k")


def test_large_batches_are_whole_at_every_size() -> None:
    """A builder sets aside what it wrote each 64 KiB: its size, and what it builds, hide that."""
    builder = BatchBuilder()
    values = [bytes([index]) * 9000 for index in range(40)]
    for index, value in enumerate(values):
        grown = builder.size + builder.size_of(None, value, index)
        builder.append(None, value, index)
        assert builder.size == grown
        if index % 13 == 0:
            batch = only(builder.build())
            assert (batch.size, batch.crc) == (grown, batch.compute_crc())
            assert [record.value for record in batch.records()] == values[: index + 1]
    batch = only(builder.build())
    assert batch.size == builder.size > 5 * 65536
    assert [record.value for record in batch.records()] == values
