"""Magic 0 and 1: wrapped offsets and timestamps, and messages that cannot be."""

from __future__ import annotations

import zlib
from struct import pack

import pytest

from kafkawire.errors import CorruptBatch, DecodeError, InvalidValue, OutOfRange
from kafkawire.records import (
    Compression,
    MessageSetBuilder,
    Record,
    RecordBatches,
    TimestampType,
    reencode,
)
from kafkawire.records.compression.codecs import compress


def message(
    magic: int, offset: int, value: bytes | None, attributes: int = 0, timestamp: int = 5
) -> bytes:
    """Write one message by hand."""
    body = pack(">bb", magic, attributes) + (pack(">q", timestamp) if magic else b"")
    body += pack(">i", -1) + (pack(">i", -1) if value is None else pack(">i", len(value)) + value)
    return pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapped(magic: int, offset: int, *inner: bytes, attributes: int = 0) -> RecordBatches:
    """Wrap messages in a compressed one."""
    stream = compress(Compression.GZIP, b"".join(inner), magic)
    return RecordBatches(message(magic, offset, stream, Compression.GZIP | attributes, 99))


def offsets(field: RecordBatches) -> list[int]:
    return [record.offset for record in field.records()]


def test_magic_1_counts_from_the_wrapper() -> None:
    inner = [message(1, 0, b"a"), message(1, 1, b"b"), message(1, 4, b"c")]
    field = wrapped(1, 104, *inner)
    assert offsets(field) == [100, 101, 104]
    assert field.columns().to_arrow()["offset"].to_pylist() == [100, 101, 104]
    (batch,) = field
    assert (batch.base_offset, batch.last_offset, batch.records_count) == (100, 104, -1)


def test_magic_1_with_absolute_offsets_inside() -> None:
    assert offsets(wrapped(1, 101, message(1, 100, b"a"), message(1, 101, b"b"))) == [100, 101]


def test_magic_1_from_a_producer_has_offset_0_outside() -> None:
    assert offsets(wrapped(1, 0, message(1, 0, b"a"), message(1, 1, b"b"))) == [0, 1]


def test_magic_0_has_absolute_offsets_inside() -> None:
    assert offsets(wrapped(0, 101, message(0, 100, b"a"), message(0, 101, b"b"))) == [100, 101]


def test_log_append_time_is_the_wrappers() -> None:
    inner = [message(1, 0, b"a", timestamp=1), message(1, 1, b"b", timestamp=2)]
    assert [r.timestamp for r in wrapped(1, 1, *inner).records()] == [1, 2]
    field = wrapped(1, 1, *inner, attributes=8)
    assert [r.timestamp for r in field.records()] == [99, 99]
    (batch,) = field
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME


IMPOSSIBLE = {
    "nested": (wrapped(1, 0, message(1, 0, b"", Compression.GZIP)), "inside a compressed"),
    "nothing inside": (wrapped(1, 0), "without messages inside"),
    "no value": (RecordBatches(message(1, 0, None, Compression.GZIP)), "without a value"),
    "last offset inside beyond": (wrapped(1, 3, message(1, 7, b"")), "inside is 7, the outer 3"),
    "offsets inside descend": (
        wrapped(1, 9, message(1, 8, b""), message(1, 7, b"")),
        "offset 8 inside",
    ),
    "negative offsets inside": (wrapped(1, 9, message(1, -1, b"")), "inside is -1"),
    "magic 2 inside": (wrapped(1, 0, message(2, 0, b"")), "magic 2 in a message set"),
    "cut inside": (wrapped(1, 0, message(1, 0, b"abc")[:-1]), "ends inside a message"),
    "cut in a size": (wrapped(1, 0, message(1, 0, b"")[:10]), "ends inside a message"),
    "short inside": (wrapped(1, 0, pack(">qi", 0, 13) + bytes(13)), "a message of 25 bytes"),
    "zstd": (RecordBatches(message(1, 0, b"", Compression.ZSTD)), "zstd is not allowed in magic 1"),
    "short": (RecordBatches(pack(">qi4xb", 0, 14, 1) + bytes(9)), "a message of 26 bytes"),
    "length": (RecordBatches(message(0, 0, b"abc").replace(b"\0\0\0\3a", b"\0\0\0\4a")), "of 4 by"),
    "less": (RecordBatches(message(0, 0, b"abc").replace(b"\0\0\0\3a", b"\0\0\0\2a")), "less"),
}


@pytest.mark.parametrize(("field", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_messages(field: RecordBatches, reason: str) -> None:
    field.check_crcs = False
    with pytest.raises(DecodeError, match=reason) as caught:
        list(field.records())
    assert caught.value.path.startswith("batch[0]")
    with pytest.raises(type(caught.value), match=reason):
        field.columns()


def test_checksums_inside_count() -> None:
    inner = bytearray(message(1, 0, b"abc"))
    inner[-1] ^= 1
    field = wrapped(1, 0, bytes(inner))
    with pytest.raises(CorruptBatch, match=r"batch\[0\]\.record\[0\]: CRC-32 is"):
        list(field.records())
    field.check_crcs = False
    assert [record.value for record in field.records()] == [b"abb"]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_builder_of_a_broker(codec: Compression) -> None:
    builder = MessageSetBuilder(1, base_offset=7, compression=codec, log_append_time=50)
    builder.append(b"k", b"v", 1)
    builder.append(None, None, 2, offset=9)
    size = builder.size
    data = builder.build()
    assert codec or size == len(data)
    assert list(RecordBatches(data).records()) == [
        Record(7, 50, b"k", b"v"),
        Record(9, 50, None, None),
    ]
    for batch in RecordBatches(data):
        assert list(RecordBatches(reencode(batch)).records()) == batch.records()


def test_what_message_sets_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="magic 2"):
        MessageSetBuilder(2)
    with pytest.raises(InvalidValue, match="no timestamps"):
        MessageSetBuilder(0, log_append_time=1)
    builder = MessageSetBuilder(1)
    builder.append(None, b"", 2**63)
    with pytest.raises(OutOfRange):
        builder.build()
    assert MessageSetBuilder(1, compression=Compression.GZIP).build() == b""
