"""Batches that are corrupt somewhere inside: what was read before the fault stands beside it."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from struct import pack_into
from typing import Final

import pytest

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.jsonl.records import batch_body, records_of, shown_value
from kafkawire.capture.jsonl.records_fields import Count
from kafkawire.capture.jsonl.writer import Text
from kafkawire.capture.tables.arrow.record_columns import RecordColumns
from kafkawire.capture.tables.extraction.record_batches import (
    CorruptRecords,
    RecordsField,
    batches_in,
)
from kafkawire.client.consumer.failures import FetchFailed
from kafkawire.client.consumer.fetch.completed_fetch import CompletedFetch
from kafkawire.client.consumer.offsets.partition_state import Position
from kafkawire.client.consumer.partitions import TopicPartition
from kafkawire.errors import CorruptBatch, InvalidLength, Truncated, WireError
from kafkawire.log import Finding, RecordRow, Rule, read, recognise
from kafkawire.records import (
    Batch,
    BatchBuilder,
    Compression,
    MessageSetBuilder,
    Record,
    RecordBatches,
)
from kafkawire.records.batch import HEADER_BYTES
from kafkawire.records.compression.codecs import compress

from .test_hostile import with_records

CODECS: Final = [codec for codec in Compression if codec != Compression.NONE]
STREAMED: Final = [Compression.GZIP, Compression.LZ4, Compression.ZSTD]


def read_both(data: bytes, check_crcs: bool = True) -> tuple[list[Record], list[WireError]]:
    """Read records and faults as objects and as columns, which must agree."""
    field = RecordBatches(data, check_crcs=check_crcs)
    faults: list[WireError] = []
    records = list(field.records(faults))
    of_columns: list[WireError] = []
    table = field.columns(of_columns).to_arrow()
    table.validate(full=True)
    assert [(type(each), str(each)) for each in of_columns] == [
        (type(each), str(each)) for each in faults
    ]
    assert [
        Record(
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in table.to_pylist()
    ] == records
    return records, faults


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def wrapped(
    inner: bytes, magic: int, codec: Compression = Compression.GZIP, offset: int = 0
) -> bytes:
    """Write a message around any inner bytes, its checksum right."""
    message = MessageSetBuilder(magic, base_offset=offset)
    message.append(None, inner, 1000)
    data = bytearray(message.build())
    data[17] = codec
    pack_into(">I", data, 12, zlib.crc32(memoryview(data)[16:]))
    return bytes(data)


def messages(magic: int, count: int = 8) -> bytes:
    """Write messages whose offsets count from 0."""
    builder = MessageSetBuilder(magic)
    for number in range(count):
        builder.append(b"key", b"value %d" % number, 1000 + number)
    return builder.build()


def one_batch(count: int = 8, codec: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(compression=codec)
    for number in range(count):
        headers = (("name", None), ("other", b"x")) if number % 2 else ()
        builder.append(None if number % 3 else b"key", b"value %d" % number, 1000, headers)
    return builder.build()


FIVE: Final = [b"value %d" % number for number in range(5)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[:3])
def test_a_set_that_ends_inside_its_sixth_message(magic: int, codec: Compression) -> None:
    """Kafka 3 stores the five before it, and says nothing."""
    inner = messages(magic)
    cut = len(inner) // 8 * 5 + 20
    data = wrapped(compress(codec, inner[:cut], magic), magic, codec)
    records, faults = read_both(data)
    assert values(records) == FIVE
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert [(type(each), each.path) for each in faults] == [(Truncated, "batch[0].record[5]")]
    with pytest.raises(Truncated):
        list(RecordBatches(data).records())
    with pytest.raises(Truncated):
        RecordBatches(data).columns()
    assert next(iter(RecordBatches(data))).base_offset == 0


def test_offsets_before_a_fault_in_magic_1() -> None:
    """They count back from the wrapper's, which is that of the last whole message."""
    inner = bytearray(messages(1))
    size = len(inner) // 8
    for place, whole in ((5 * size + 13, 8), (5 * size + 16, 8)):
        damaged = bytearray(inner)
        damaged[place] ^= 0x7F
        data = wrapped(compress(Compression.GZIP, bytes(damaged), 1), 1, offset=100)
        records, faults = read_both(data)
        assert values(records) == FIVE
        assert [record.offset for record in records] == [101 - whole + n for n in range(5)]
        assert [each.path for each in faults] == ["batch[0].record[5]"]
        assert next(iter(RecordBatches(data))).base_offset == 101 - whole
    data = wrapped(compress(Compression.GZIP, bytes(inner[: 5 * size + 7]), 1), 1, offset=100)
    assert [record.offset for record in read_both(data)[0]] == [96, 97, 98, 99, 100]


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("bad", range(8))
def test_the_nth_record_is_corrupt(bad: int, codec: Compression) -> None:
    body = bytearray(one_batch()[HEADER_BYTES:])
    at = body.index(b"value %d" % bad)
    body[at - 1] = 0x7F  # the value's length
    stream = compress(codec, bytes(body), 2)
    good = one_batch()
    records, faults = read_both(with_records(stream, 8, codec) + good)
    wanted = [b"value %d" % number for number in range(8)]
    assert values(records) == wanted[:bad] + wanted
    assert [(type(each), each.path) for each in faults] == [
        (InvalidLength, f"batch[0].record[{bad}]")
    ]


def test_what_a_corrupt_record_put_into_columns_is_taken_back() -> None:
    """Null keys, null values and null header values of it would show in the next batch's rows."""
    builder = BatchBuilder()
    builder.append(b"key", b"value 0", 0, (("a", b"x"),))
    builder.append(None, None, 0, (("b", None), ("c", None)))
    body = bytearray(builder.build()[HEADER_BYTES:])
    later = BatchBuilder()
    for number in range(20):
        later.append(b"key", b"value %d" % number, 0, (("d", b"y"), ("e", b"z")))
    assert body.endswith(b"\x02c\x01")
    body[-1] = 0x03  # null too, and what follows the record is right: only its length is wrong
    body[-3] = 0x04
    for tail in (bytes(body), bytes(body) + bytes(100)):
        records, faults = read_both(with_records(tail, 2) + later.build() + later.build())
        assert len(records) == 41
        assert len(faults) == 1


def test_a_count_that_is_too_high_or_too_low() -> None:
    body = one_batch()[HEADER_BYTES:]
    for count, expected in ((7, 7), (9, 8), (1000, 8), (2**31 - 1, 0)):
        records, faults = read_both(with_records(body, count))
        assert len(records) == expected
        assert len(faults) == 1


@pytest.mark.parametrize("codec", STREAMED)
def test_compressed_data_that_is_cut(codec: Compression) -> None:
    """Records whose bytes come out before the cut; of lz4 and zstd, those of whole blocks."""
    builder = BatchBuilder()
    wanted = [b"%06d" % number + b"x" * 94 for number in range(5000)]
    for value in wanted:
        builder.append(None, value)
    body = builder.build()[HEADER_BYTES:]
    stream = compress(codec, body, 2)
    before = 0
    for cut in (len(stream) // 3, len(stream) // 2, len(stream) - 1):
        records, faults = read_both(with_records(stream[:cut], 5000, codec))
        assert values(records) == wanted[: len(records)]
        assert len(records) >= before
        before = len(records)
        assert [(type(each), each.path) for each in faults] == [(CorruptBatch, "batch[0]")]
    assert before > 3000
    damaged = bytearray(stream)
    damaged[len(stream) * 3 // 4] ^= 0xFF
    records, faults = read_both(with_records(bytes(damaged), 5000, codec))
    assert len(faults) == 1
    assert values(records)[:1000] == wanted[:1000]


def test_snappy_gives_the_blocks_before_a_corrupt_one() -> None:
    builder = BatchBuilder()
    wanted = [b"%06d" % number + b"x" * 94 for number in range(2000)]
    for value in wanted:
        builder.append(None, value)
    stream = compress(Compression.SNAPPY, builder.build()[HEADER_BYTES:], 2)
    records, faults = read_both(with_records(stream[:-5], 2000, Compression.SNAPPY))
    assert values(records) == wanted[: len(records)]
    assert 1500 < len(records) < 2000
    assert len(faults) == 1
    raw = b"\x80\x08" + bytes(60)  # a raw block has no order to keep
    assert read_both(with_records(raw, 3, Compression.SNAPPY))[0] == []


def test_batches_behind_an_unreadable_header_are_read() -> None:
    other = bytearray(one_batch(1))
    other[16] = 7
    records, faults = read_both(one_batch(2) + bytes(other) + one_batch(3))
    assert [record.offset for record in records] == [0, 1, 0, 1, 2]
    assert [each.path for each in faults] == ["batch[1]"]


# -- where records are shown


def damaged_field() -> bytes:
    """Write a batch whose sixth record is corrupt, a set cut in its sixth message, a good batch."""
    body = bytearray(one_batch()[HEADER_BYTES:])
    body[body.index(b"value 5") - 1] = 0x7F
    inner = messages(1)
    legacy = wrapped(compress(Compression.GZIP, inner[: len(inner) // 8 * 5 + 20], 1), 1)
    return with_records(bytes(body), 8) + legacy + one_batch(2)


SHOWN: Final = [*FIVE, *FIVE, b"value 0", b"value 1"]


def test_decode_shows_records_and_fault() -> None:
    data = damaged_field()
    made = json.loads(records_of("records", "t", 0, data))
    assert [each["value"] for each in made["content"]] == [
        {"text": value.decode()} for value in SHOWN
    ]
    assert made["error"].startswith("batch[0].record[5]: ")
    assert made["error"].endswith("; 1 more error")
    assert (made["batches"], made["records"]) == (3, 8 + 5 + 2)
    out = Text(shown_value, records_of, batch_body, True)
    out.place("records", "t", 0, data)
    assert json.loads(bytes(out.view())) == made
    assert Count(data).error is not None


def test_the_records_table_has_them() -> None:
    field = RecordsField(Topic("t", None), 0, damaged_field())
    found = list(batches_in(field))
    assert [isinstance(each, CorruptRecords) for each in found] == [False, True, False, True, False]
    columns = RecordColumns(lambda: None)
    columns.fields.add(field, "a.pcap", 1, 0, 0, "c", "b", "produce", None, 7)
    rows = [row for batch in columns.batches() for row in batch.to_pylist()]
    assert [row["value"] for row in rows] == SHOWN


def test_the_log_verb_has_them(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(damaged_field())
    file = recognise(path)
    assert file is not None
    found = list(read(file, verify=False))
    assert [each.value for each in found if isinstance(each, RecordRow)] == SHOWN
    assert [(at, each.rule) for at, each in enumerate(found) if isinstance(each, Finding)] == [
        (5, Rule.RECORDS),
        (11, Rule.RECORDS),
    ]


def test_a_consumer_returns_them_before_it_fails() -> None:
    """As Kafka's: the position is then behind the last record returned."""
    body = bytearray(one_batch()[HEADER_BYTES:])
    body[body.index(b"value 5") - 1] = 0x7F
    for bad, records in ((bytes(body), 5), (bytes(body[8:]), 0)):
        buffer = CompletedFetch(TopicPartition("t", 0), Position(0, -1), with_records(bad, 8))
        taken = buffer.take(100) if records else []
        assert [each.value for each in taken] == FIVE[:records]
        with pytest.raises(FetchFailed, match=f"from offset {records} on"):
            buffer.take(100)
        assert buffer.position.offset == records


def test_budget_of_a_field_is_that_of_all_its_batches() -> None:
    batch = Batch(one_batch(), 0, len(one_batch()))
    limits = batch.limits
    assert batch_body(batch.data, 0, batch.end, limits.max_bytes, 0) is not None
    assert batch_body(batch.data, 0, batch.end, 0, limits.max_records) is None
    packed = one_batch(8, Compression.LZ4)
    assert batch_body(packed, 0, len(packed), limits.max_bytes, 0) is None


@pytest.mark.parametrize("first", [-1, 2, 9])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_rows_end_with_the_fault_of_the_records(first: int, codec: Compression) -> None:
    """Which is named the same, however many records before it are left out."""
    builder = BatchBuilder(compression=codec)
    builder.extend([Record(at, at, None, bytes(60)) for at in range(5)])
    data = bytearray(builder.build())
    pack_into(">i", data, HEADER_BYTES - 4, 7)  # more records than there are
    (batch,) = RecordBatches(bytes(data), check_crcs=False)
    faults: list[WireError] = []
    found: list[WireError] = []
    records = batch.records(faults=faults)
    rows = batch.rows("t", 0, first, found)
    assert [row[2:7] for row in rows] == [
        (each.offset, each.timestamp, each.key, each.value, each.headers)
        for each in records
        if each.offset >= first
    ]
    assert len(records) == 5
    assert [str(each) for each in found] == [str(each) for each in faults]
    assert "record[5]" in str(found[0])
