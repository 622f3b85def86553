"""Decodes the records of one batch of magic 2 to objects.

A record's declared length equals that of its fields, and the last record ends with the batch.
Records before a corrupt one are returned. The key of a header that is not UTF-8 is a
`ReplacedText`, or an error where `strict`.

    length: varint │ attributes: int8 (unused) │ timestamp delta: varlong │ offset delta: varint │
    key length: varint, key │ value length: varint, value │ header count: varint,
    (key length: varint, key: UTF-8, value length: varint, value)*          a negative length is
    null
"""

from typing import Any, Final

from mypy_extensions import i64

from ..errors import CorruptBatch, InvalidLength, InvalidText, Truncated, WireError
from .cursor import MAX_INT64, Cursor
from .record import NO_HEADERS, Headers, Record
from .replaced_text import ReplacedText

SMALLEST_RECORD: Final = 7
"""Bytes of a record with null key, null value and no headers."""

Source = tuple[str, int, int, object, int]
"""Topic, partition, the first offset that is wanted, timestamp type and leader epoch of records."""

CALM: Final = 0x2000000000000000
"""Two numbers between this and its negative can be added without overflow."""


def decode_records(  # noqa: PLR0913 - native integers, without an object per batch
    records: list[Any],
    data: bytes,
    start: i64,
    end: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    log_append: bool,
    batch_index: int,
    source: Source | None = None,
    strict: bool = False,
) -> WireError | None:
    """Decode `count` records in `data[start:end]`, up to a fault, which is returned.

    records: what was decoded is appended here: Record, or tuples as of `Batch.rows` from `source`.
    append_timestamp: every record's timestamp if `log_append`.
    batch_index: for errors.
    """
    topic, partition, first_offset, kind, epoch = source or ("", 0, 0, None, 0)
    first: i64 = first_offset
    cursor = Cursor(data, start, end, strict)
    calm = -CALM < base_timestamp < CALM
    left = count
    try:
        while left > 0:  # not `for _`: mypyc makes an object of it
            length = cursor.varint(data)
            stop = cursor.pos + length
            if length < 0 or stop > end:
                raise unfit(length, cursor.pos, end)
            cursor.pos += 1
            delta = cursor.varint(data, 64)
            if not calm or delta > CALM or delta < -CALM:
                check_sum(base_timestamp, delta)
            timestamp = append_timestamp if log_append else base_timestamp + delta
            offset = base_offset + cursor.varint(data)
            key = take(cursor, data, stop)
            value = take(cursor, data, stop)
            header_count = cursor.varint(data)
            headers = NO_HEADERS
            if header_count != 0:
                headers = take_headers(cursor, data, stop, header_count)
            if cursor.pos != stop:
                raise misfit(cursor.pos, stop)
            at, time = int(offset), int(timestamp)
            if source is None:
                records.append(Record(at, time, key, value, headers))
            elif offset >= first:
                records.append((topic, partition, at, time, key, value, headers, kind, epoch))
            left -= 1
        check_consumed(cursor)
    except WireError as error:
        return located(error, batch_index, int(count - left))
    return None


def unfit(length: i64, pos: i64, end: i64) -> WireError:
    """Make the error for a record that exceeds the batch."""
    if length < 0:
        return InvalidLength(f"a record of {length} bytes", "", int(pos))
    return Truncated(f"a record of {length} bytes, {end - pos} left", "", int(pos))


def check_sum(base: i64, delta: i64) -> None:
    """Raise for a timestamp and delta of a corrupt batch whose sum exceeds an int64."""
    if base > MAX_INT64 - delta if delta > 0 else base < -MAX_INT64 - 1 - delta:
        raise CorruptBatch(f"timestamp {base} and delta {delta} exceed an int64")


def take(cursor: Cursor, data: bytes, stop: i64) -> bytes | None:
    """Read a length and that many bytes; a negative length is null."""
    length = cursor.varint(data)
    if length < 0:
        return None
    pos = cursor.pos
    if length > stop - pos:
        raise overrun(length, pos, stop)
    cursor.pos = pos + length
    return data[pos : pos + length]


def take_headers(cursor: Cursor, data: bytes, stop: i64, count: i64) -> Headers:
    """Read `count` headers."""
    check_header_count(cursor, stop, count)
    headers: list[tuple[str, bytes | None]] = []
    left = count
    while left > 0:
        length = cursor.varint(data)
        pos = cursor.pos
        key = header_key(data, pos, length, stop, cursor.strict)
        cursor.pos = pos + length
        headers.append((key, take(cursor, data, stop)))
        left -= 1
    return tuple(headers)


def check_header_count(cursor: Cursor, stop: i64, count: i64) -> None:
    """Raise for a count beyond the rest of the record: a header has at least two bytes."""
    if count < 0 or count * 2 > stop - cursor.pos:
        raise InvalidLength(f"{count} headers in {stop - cursor.pos} bytes", "", int(cursor.pos))


def header_key(data: bytes, pos: i64, length: i64, stop: i64, strict: bool) -> str:
    """Read a header's key of `length` bytes, which is not null.

    Kafka's `RecordHeader` replaces what is not UTF-8, and its brokers do not read header keys
    (`PartialDefaultRecord`, `RecordHeader(ByteBuffer, ByteBuffer)`).
    """
    if length < 0 or length > stop - pos:
        raise overrun(length, pos, stop)
    raw = data[pos : pos + length]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        if strict:
            raise InvalidText("the key of a header is not UTF-8", "", int(pos)) from None
    return ReplacedText(raw)


def check_consumed(cursor: Cursor) -> None:
    """Raise for bytes after the last record."""
    if cursor.pos != cursor.end:
        raise CorruptBatch(
            f"{cursor.end - cursor.pos} bytes after the last record", "", int(cursor.pos)
        )


def overrun(length: i64, pos: i64, stop: i64) -> WireError:
    """Make the error for a field that does not fit its record."""
    return InvalidLength(
        f"a field of {length} bytes, {stop - pos} left in the record", "", int(pos)
    )


def misfit(pos: i64, stop: i64) -> WireError:
    """Make the error for a record with a wrong length."""
    what = "more" if pos > stop else "less"
    return CorruptBatch(f"the fields take {what} than the record's length", "", int(pos))


def located(error: WireError, batch_index: int, index: int) -> WireError:
    """Add the record and batch to the path of an error."""
    inner = f".{error.path}" if error.path else ""
    return type(error)(error.reason, f"batch[{batch_index}].record[{index}]{inner}", error.offset)
