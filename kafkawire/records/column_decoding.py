"""Decodes the records of one batch of magic 2 into columns.

This module reads what `decoding` reads, up to a fault, which it returns. `rows` does the same
faster if it is compiled, and leaves records that it cannot add to this module.
"""

from mypy_extensions import i64

from ..errors import WireError
from .columns import Columns
from .cursor import Cursor
from .decoding import check_consumed, check_sum, located, misfit, unfit
from .rows import add_rows


def add_records(  # noqa: PLR0913 - native integers, without an object per batch
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
    strict: bool = False,
) -> WireError | None:
    """Add the `count` records of magic 2 in `data[start:end]`, as `decode_records` reads them.

    It ends at a fault, which is returned.
    """
    cursor = Cursor(data, start, end, strict)
    fault = add_some(
        columns,
        cursor,
        data,
        count,
        base_offset,
        base_timestamp,
        append_timestamp,
        log_append,
        batch_index,
        buffer,
    )
    if fault is not None:
        return fault
    try:
        check_consumed(cursor)
    except WireError as error:
        return located(error, batch_index, int(count))
    return None


def add_some(  # noqa: PLR0913 - native integers, without an object per batch
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    log_append: bool,
    batch_index: int,
    buffer: i64,
) -> WireError | None:
    """Add the next `count` records at a cursor in `data`; end at a fault, which is returned."""
    columns.reserve(count)
    first = columns.rows
    row = first
    last = first + count
    fault: WireError | None = None
    try:
        while row < last:
            row = add_quickly(columns, cursor, data, row, last, base_offset, base_timestamp, buffer)
            if row < last:
                add_record(columns, cursor, data, row, base_offset, base_timestamp, buffer)
                row += 1
    except WireError as error:
        fault = located(error, batch_index, int(row - first))
    columns.rows = row
    columns.batch.fill(first, row, batch_index)
    if log_append:
        columns.timestamp.fill(first, row, append_timestamp)
    return fault


def add_quickly(
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    row: i64,
    last: i64,
    base_offset: i64,
    base_timestamp: i64,
    buffer: i64,
) -> i64:
    """Add records by `add_rows` as far as it can; return the row reached."""
    reached, pos, null_keys, null_values, headers, null_header_values = add_rows(
        data,
        cursor.pos,
        cursor.end,
        row,
        last,
        base_offset,
        base_timestamp,
        buffer,
        columns.headers,
        columns.header_key.room,
        columns.memory(),
    )
    cursor.pos = pos
    columns.key.nulls += null_keys
    columns.value.nulls += null_values
    columns.headers = headers
    columns.header_value.nulls += null_header_values
    return reached


def add_record(
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    row: i64,
    base_offset: i64,
    base_timestamp: i64,
    buffer: i64,
) -> None:
    """Add one record, or nothing of one that is corrupt."""
    keys, values, headers = columns.key.nulls, columns.value.nulls, columns.headers
    header_values = columns.header_value.nulls
    try:
        put_record(columns, cursor, data, row, base_offset, base_timestamp, buffer)
    except WireError:
        columns.key.take_back(row, row + 1, keys)
        columns.value.take_back(row, row + 1, values)
        columns.header_value.take_back(headers, columns.headers, header_values)
        columns.headers = headers
        invalid = columns.invalid_header_keys
        while invalid and invalid[-1] >= headers:
            invalid.pop()
        raise


def put_record(
    columns: Columns,
    cursor: Cursor,
    data: bytes,
    row: i64,
    base_offset: i64,
    base_timestamp: i64,
    buffer: i64,
) -> None:
    """Put one record into a row."""
    length = cursor.varint(data)
    stop = cursor.pos + length
    if length < 0 or stop > cursor.end:
        raise unfit(length, cursor.pos, cursor.end)
    cursor.pos += 1
    delta = cursor.varint(data, 64)
    check_sum(base_timestamp, delta)
    columns.timestamp.put(row, base_timestamp + delta)
    columns.offset.put(row, base_offset + cursor.varint(data))
    columns.key.put_next(row, cursor, data, stop, buffer)
    columns.value.put_next(row, cursor, data, stop, buffer)
    header_count = cursor.varint(data)
    if header_count != 0:
        columns.add_headers(cursor, data, stop, header_count, buffer)
    if cursor.pos != stop:
        raise misfit(cursor.pos, stop)
    columns.header_ends.fill(row + 1, row + 2, columns.headers)
