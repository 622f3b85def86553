"""Bytes that are wrong: flipped bits, cuts, random bytes, bombs. A clear error, and a cheap one."""

from __future__ import annotations

import tracemalloc
import zlib
from struct import pack, pack_into

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire.errors import (
    CorruptBatch,
    DecodeError,
    InvalidLength,
    InvalidText,
    InvalidVarint,
    LimitExceeded,
    Truncated,
    UnsupportedCompression,
    UnsupportedMagic,
)
from kafkawire.records import (
    BatchBuilder,
    Compression,
    MessageSetBuilder,
    Record,
    RecordBatches,
    RecordLimits,
)
from kafkawire.records.batch import HEADER_BYTES
from kafkawire.records.compression.codecs import compress
from tests.fuzzing import examples

from .drawn import Batch, batches

CODECS = [codec for codec in Compression if codec != Compression.NONE]


def sample(compression: Compression = Compression.NONE) -> bytes:
    """Write a batch with what a batch can have."""
    builder = BatchBuilder(base_offset=7, compression=compression, producer_id=3, base_sequence=1)
    builder.append(b"key", b"value", 1000, (("header", b"x"), ("empty", None)))
    builder.append(None, b"v" * 200, 999)
    builder.append(b"k" * 20, None, 70_000)
    return builder.build()


def with_records(body: bytes, count: int = 1, attributes: int = 0) -> bytes:
    """Write a batch of magic 2 around any bytes, its checksum right."""
    after = pack(">hiqqqhii", attributes, 0, 0, 0, -1, -1, -1, count) + body
    return pack(">qiibI", 0, 9 + len(after), -1, 2, crc32c(after)) + after


def outcome(data: bytes, check_crcs: bool = True) -> list[Record] | DecodeError:
    """Read records as objects and as columns, which must agree; a refusal is a value here."""
    try:
        records = list(RecordBatches(data, check_crcs=check_crcs).records())
    except DecodeError as error:
        with pytest.raises(type(error)):
            RecordBatches(data, check_crcs=check_crcs).columns()
        return error
    columns = RecordBatches(data, check_crcs=check_crcs).columns().to_arrow()
    columns.validate(full=True)
    assert columns["offset"].to_pylist() == [record.offset for record in records]
    assert columns["timestamp"].to_pylist() == [record.timestamp for record in records]
    assert columns["value"].to_pylist() == [record.value for record in records]
    return records


OUTSIDE_THE_CHECKSUM = {*range(8), *range(12, 16)}
"""Bytes of a header that may change unseen: base offset and partition leader epoch."""


@pytest.mark.parametrize("codec", list(Compression))
def test_every_bit_of_a_header_flipped(codec: Compression) -> None:
    data = sample(codec)
    for place in range(HEADER_BYTES):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            read = outcome(bytes(flipped))
            if place in OUTSIDE_THE_CHECKSUM:
                assert isinstance(read, list) or "base offset" in read.reason
            elif isinstance(read, list):
                # a longer length makes it a cut tail, and that is not silent
                assert read == []
                assert RecordBatches(bytes(flipped)).cut_tail == len(data)
            else:
                assert read.path.startswith("batch[0]")
                assert read.offset is not None


@pytest.mark.parametrize("codec", list(Compression))
def test_every_bit_flipped_unchecked(codec: Compression) -> None:
    data = sample(codec)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            outcome(bytes(flipped), check_crcs=False)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_bit_of_a_message_flipped(magic: int) -> None:
    builder = MessageSetBuilder(magic, compression=Compression.GZIP)
    builder.append(b"key", b"value" * 10, 1000)
    builder.append(None, b"", 1001)
    data = builder.build()
    for place in range(8, len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            read = outcome(bytes(flipped))
            assert isinstance(read, DecodeError) or read == []
            outcome(bytes(flipped), check_crcs=False)


@settings(max_examples=20, deadline=None)
@given(st.lists(batches(), min_size=1, max_size=2))
def test_truncated_at_every_byte(drawn: list[Batch]) -> None:
    parts = [batch.encode() for batch in drawn]
    data = b"".join(parts)
    whole = list(RecordBatches(data))
    for end in range(len(data)):
        field = RecordBatches(data[:end])
        kept = [batch for batch in whole if batch.end <= end]
        assert [batch.end for batch in field] == [batch.end for batch in kept]
        assert field.cut_tail == end - (kept[-1].end if kept else 0)
    assert len(list(RecordBatches(data).records())) == sum(len(batch.records) for batch in drawn)


@pytest.mark.parametrize("codec", list(Compression))
def test_records_truncated_at_every_byte(codec: Compression) -> None:
    data = sample(codec)
    body = data[HEADER_BYTES:]
    for end in range(len(body)):
        read = outcome(with_records(body[:end], 3, codec))
        assert isinstance(read, DecodeError)
        assert read.path.startswith("batch[0]")


@pytest.mark.fuzz
@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    outcome(data)
    outcome(data, check_crcs=False)


@pytest.mark.fuzz
@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=120), st.integers(0, 12), st.sampled_from([0, 1, 2, 3, 4, 8, 72]))
def test_random_records(body: bytes, count: int, attributes: int) -> None:
    outcome(with_records(body, count, attributes))


@pytest.mark.fuzz
@settings(max_examples=examples(70), deadline=None)
@given(st.binary(max_size=120), st.sampled_from([0, 1]), st.sampled_from(CODECS[:3]))
def test_random_message_sets(inner: bytes, magic: int, codec: Compression) -> None:
    message = MessageSetBuilder(magic)
    message.append(None, compress(codec, inner, magic))
    data = bytearray(message.build())
    data[17] = codec
    pack_into(">I", data, 12, zlib.crc32(memoryview(data)[16:]))
    outcome(bytes(data))


FAULTS = [
    # a record: length, attributes, timestamp delta, offset delta, key, value, header count
    (b"\x80\x80\x80\x80\x80\x80" + bytes(6), InvalidVarint, "batch[0].record[0]", 61),
    (b"\x80\x80\x80\x80\x10" + bytes(7), InvalidLength, "batch[0].record[0]", 70),  # wraps to 0
    (b"\x0d\x00\x00\x00\x01\x01\x00", InvalidLength, "batch[0].record[0]", 62),
    (b"\x20\x00\x00\x00\x01\x01\x00", Truncated, "batch[0].record[0]", 62),
    (b"\x0c\x00\x00\x00\x01\x02\x00", Truncated, "batch[0].record[0]", 68),
    (b"\x0c\x00\x00\x00\x01\x02\x00\x00", CorruptBatch, "batch[0].record[0]", 69),
    (b"\x0e\x00\x00\x00\x01\x01\x00\x00", CorruptBatch, "batch[0].record[0]", 68),
    (b"\x0c\x00\x00\x00\x01\x01\x00\x00", CorruptBatch, "batch[0].record[1]", 68),
    (b"\x0c\x00\x00\x00\x08\x01\x00", InvalidLength, "batch[0].record[0]", 66),
    (b"\x0c\x00\x00\x00\x01\x01\x01", InvalidLength, "batch[0].record[0]", 68),
    (b"\x0c\x00\x00\x00\x01\x01\x04", InvalidLength, "batch[0].record[0]", 68),
    (b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01", InvalidText, "batch[0].record[0]", 69),  # strict
]


@pytest.mark.parametrize(("body", "error", "path", "offset"), FAULTS)
def test_faults_are_located(body: bytes, error: type[DecodeError], path: str, offset: int) -> None:
    with pytest.raises(error) as caught:
        list(RecordBatches(with_records(body), strict=True).records())
    assert (type(caught.value), caught.value.path, caught.value.offset) == (error, path, offset)
    with pytest.raises(error) as caught:
        RecordBatches(with_records(body), strict=True).columns()
    assert caught.value.path == path


def test_timestamp_beyond_an_int64_is_refused() -> None:
    body = b"\x1e\x00" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x00\x01\x01\x00"
    data = bytearray(with_records(body))
    assert next(RecordBatches(bytes(data)).records()).timestamp == 2**63 - 1
    pack_into(">q", data, 27, 1)
    pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    assert isinstance(outcome(bytes(data)), CorruptBatch)


def test_unknown_magic_codec_and_length() -> None:
    data = bytearray(sample())
    data[16] = 3
    with pytest.raises(UnsupportedMagic, match=r"batch\[0\]: magic 3 \(at byte 16\)"):
        list(RecordBatches(bytes(data)))
    with pytest.raises(UnsupportedCompression, match="unknown codec 5"):
        list(RecordBatches(with_records(bytes(20), 1, 5)).records())
    with pytest.raises(InvalidLength, match=r"batch\[0\]: a batch length of 3 \(at byte 8\)"):
        list(RecordBatches(pack(">qi", 0, 3) + bytes(60)))
    with pytest.raises(InvalidLength, match="a batch of 60 bytes"):
        list(RecordBatches(pack(">qiib", 0, 48, 0, 2) + bytes(60)))
    with pytest.raises(InvalidLength, match="-1 records"):
        list(RecordBatches(with_records(b"", -1)))


def test_second_batch_is_named() -> None:
    data = bytearray(sample() + sample())
    data[-1] ^= 1
    with pytest.raises(CorruptBatch) as caught:
        list(RecordBatches(bytes(data)).records())
    assert (caught.value.path, caught.value.offset) == ("batch[1]", len(data) // 2 + 17)


@pytest.mark.parametrize("codec", CODECS)
def test_bomb_is_refused_with_its_ratio(codec: Compression) -> None:
    limit = 1 << 20
    data = with_records(compress(codec, bytes(64 << 20), 2), 1, codec)
    field = RecordBatches(data, RecordLimits(max_batch_bytes=limit))
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match=r"batch\[0\]: .* allowed \(over \d+\.\d:1\)"):
            list(field.records())
        assert tracemalloc.get_traced_memory()[1] < 16 * limit
    finally:
        tracemalloc.stop()


def test_snappy_is_not_believed() -> None:
    claim = b"\xff\xff\xff\xff\x07" + bytes(40)
    with pytest.raises(CorruptBatch, match="snappy: 45 bytes cannot become 2147483647"):
        list(RecordBatches(with_records(claim, 1, Compression.SNAPPY)).records())


def test_limits_hold_for_a_call_and_for_a_batch() -> None:
    data = sample(Compression.ZSTD)
    size = len(sample()) - HEADER_BYTES
    assert len(list(RecordBatches(data * 2, RecordLimits(max_bytes=2 * size)).records())) == 6
    assert len(list(RecordBatches(data * 2, RecordLimits(max_records=6)).records())) == 6
    for limits in (
        RecordLimits(max_batch_bytes=size - 1),
        RecordLimits(max_bytes=2 * size - 1),
        RecordLimits(max_batch_records=2),
        RecordLimits(max_records=5),
    ):
        field = RecordBatches(data * 2, limits)
        with pytest.raises(LimitExceeded):
            list(field.records())
        with pytest.raises(LimitExceeded):
            field.columns()


def test_limits_hold_inside_a_message() -> None:
    builder = MessageSetBuilder(1, compression=Compression.GZIP)
    for _ in range(5):
        builder.append(None, b"")
    data = builder.build()
    assert len(list(RecordBatches(data, RecordLimits(max_batch_records=5)).records())) == 5
    with pytest.raises(LimitExceeded, match="more than the 4 records"):
        list(RecordBatches(data, RecordLimits(max_batch_records=4)).records())


def test_a_count_is_not_believed() -> None:
    data = with_records(bytes(20), 2**31 - 1)
    with pytest.raises(DecodeError):
        list(RecordBatches(data).records())
    with pytest.raises(InvalidLength, match="3 records in 20 bytes"):
        list(RecordBatches(with_records(bytes(20), 3)).records())
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            RecordBatches(data, RecordLimits(2**31, 2**31, 2**31, 2**31)).columns()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
