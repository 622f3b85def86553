"""The records of one batch of magic 2, as rows of columns.

Law: this reads what `decoding` reads and refuses what it refuses, by a general way for any record
and a short way for plain ones, which adds what the general way would or stops before the record.
"""

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i32, i64, u8

from ..errors import WireError
from .columns import INLINE, Columns
from .cursor import Cursor
from .decoding import CALM, check_consumed, check_sum, located, misfit, unfit


def add_records(
    columns: Columns,
    data: bytes,
    start: i64,
    end: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    log_append: bool,
    batch_index: int,
    buffer: i64,
) -> None:
    """Add the `count` records of magic 2 in `data[start:end]`, as `decode_records` reads them."""
    cursor = Cursor(data, start, end)
    columns.reserve(count)
    first = columns.rows
    row = first
    last = first + count
    plain = -CALM < base_timestamp < CALM
    try:
        while row < last:
            if plain:
                reached = add_plain_records(
                    columns, cursor, data, row, last, base_offset, base_timestamp, buffer
                )
                plain = reached > row  # after a run without success the rest goes the general way
                row = reached
            if row < last:
                add_record(columns, cursor, data, row, base_offset, base_timestamp, buffer)
                row += 1
        check_consumed(cursor)
    except WireError as error:
        raise located(error, batch_index, int(row - first)) from None
    columns.rows = row
    fill(columns, first, i32(batch_index), append_timestamp, log_append)


def fill(columns: Columns, first: i64, batch: i32, append_timestamp: i64, log_append: bool) -> None:
    """Put into the rows from `first` on what a batch says for all of them."""
    columns.batch.fill(first, columns.rows, batch)
    if log_append:
        timestamps = columns.timestamp
        row = first
        while row < columns.rows:
            timestamps[row] = append_timestamp
            row += 1


def add_record(
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    row: i64,
    base_offset: i64,
    base_timestamp: i64,
    buffer: i64,
) -> None:
    """Add one record."""
    length = cursor.varint(data)
    stop = cursor.pos + length
    if length < 0 or stop > cursor.end:
        raise unfit(length, cursor.pos, cursor.end)
    cursor.pos += 1
    delta = cursor.varint(data, 64)
    check_sum(base_timestamp, delta)
    columns.timestamp[row] = base_timestamp + delta
    columns.offset[row] = base_offset + cursor.varint(data)
    columns.key.put_next(row, cursor, data, stop, buffer)
    columns.value.put_next(row, cursor, data, stop, buffer)
    header_count = cursor.varint(data)
    if header_count != 0:
        columns.add_headers(cursor, data, stop, header_count, buffer)
    if cursor.pos != stop:
        raise misfit(cursor.pos, stop)
    columns.header_ends.fill(row + 1, row + 2, i32(columns.headers))


def add_plain_records(
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    row: i64,
    last: i64,
    base_offset: i64,
    base_timestamp: i64,
    buffer: i64,
) -> i64:
    """Add records up to `last` as far as they are plain; return the row reached.

    Plain is what has no headers, lengths of two bytes at most, deltas of three, and is not the last
    of the data. It is here for speed alone: the position stays in a register, where `cursor` would
    send it through memory six times a record. So each varint is spelled out.
    """
    first = row
    offsets, timestamps = columns.offset, columns.timestamp
    keys, values = columns.key, columns.value
    values.make_room()
    words, key_valid = values.words, keys.valid
    keyed = keys.room != 0
    null_keys: i64 = 0
    safe = cursor.whole_words
    p = cursor.pos
    while row < last and p <= safe:
        word = read_i64_le(data, p)
        if word & 0x81 == 0:
            p += 1
            stop = p + (word >> 1 & 0x3F)
        elif word & 0x8001 == 0:
            p += 2
            stop = p + ((word >> 1 & 0x3F) | (word >> 2 & 0x1FC0))
        else:
            break
        if stop > safe:
            break
        word = read_i64_le(data, p + 1)
        if word & 0x80 == 0:
            p += 2
            delta = (word >> 1 & 0x3F) ^ -(word & 1)
        elif word & 0x8000 == 0:
            p += 3
            delta = ((word >> 1 & 0x3F) | (word >> 2 & 0x1FC0)) ^ -(word & 1)
        elif word & 0x800000 == 0:
            p += 4
            delta = (word >> 1 & 0x3F | word >> 2 & 0x1FC0 | word >> 3 & 0xFE000) ^ -(word & 1)
        else:
            break
        timestamps[row] = base_timestamp + delta
        word = read_i64_le(data, p)
        if word & 0x80 == 0:
            p += 1
            delta = (word >> 1 & 0x3F) ^ -(word & 1)
        elif word & 0x8000 == 0:
            p += 2
            delta = ((word >> 1 & 0x3F) | (word >> 2 & 0x1FC0)) ^ -(word & 1)
        elif word & 0x800000 == 0:
            p += 3
            delta = (word >> 1 & 0x3F | word >> 2 & 0x1FC0 | word >> 3 & 0xFE000) ^ -(word & 1)
        else:
            break
        offsets[row] = base_offset + delta
        word = read_i64_le(data, p)
        key_length: i64 = -1
        if word & 0x81 == 0:
            p += 1
            key_length = word >> 1 & 0x3F
        elif word & 0x8001 == 0:
            p += 2
            key_length = (word >> 1 & 0x3F) | (word >> 2 & 0x1FC0)
        elif word & 0xFF == 1:
            p += 1
        else:
            break
        key_at = p
        if key_length > 0:
            p += key_length
            if p >= stop:
                break
        word = read_i64_le(data, p)
        if word & 0x81 == 0:
            p += 1
            length = word >> 1 & 0x3F
        elif word & 0x8001 == 0:
            p += 2
            length = (word >> 1 & 0x3F) | (word >> 2 & 0x1FC0)
        else:
            break
        if p + length + 1 != stop or data[stop - 1] != 0:
            break
        if key_length < 0:
            if keyed:
                key_valid[row >> 3] &= u8(255 - (1 << (row & 7)))
            null_keys += 1
        else:
            if not keyed:
                keys.nulls += null_keys
                null_keys = 0
                keys.make_room()
                key_valid = keys.valid
                keyed = True
            keys.put(row, data, key_at, key_length, buffer)
        if length > INLINE:
            words[row * 2] = i64(read_i32_le(data, p)) << 32 | length
            words[row * 2 + 1] = p << 32 | buffer
        else:
            values.put(row, data, p, length, buffer)
        row += 1
        p = stop
        cursor.pos = stop
    keys.nulls += null_keys
    columns.header_ends.fill(first + 1, row + 1, i32(columns.headers))
    return row
