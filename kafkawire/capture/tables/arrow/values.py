"""Copies values into Arrow's memory layout; the pure Python version of `values.c`.

Both produce the same bytes.

    ends    0 | the end of each value: int32        data    the concatenated values
    valid   one bit per value, lowest first; None if no value is null
    flags   one byte per value: 0 for null or false
"""

from __future__ import annotations

from array import array
from itertools import accumulate, chain, islice, repeat
from struct import Struct
from typing import Final

Data = bytes | bytearray | memoryview

Column = tuple[bytearray, bytearray, bytearray | None]
"""ends, data, valid"""

VIEW: Final = Struct("<i4xii")
IN_VIEW: Final = 12
MAX_INT32: Final = 0x7FFFFFFF
LAST_TIME: Final = 253_402_300_799_999_999
"""As in `columns`."""


def texts(values: list[str | None]) -> Column:
    """Copy strings. Raises UnicodeEncodeError, OverflowError."""
    return _column([None if value is None else value.encode() for value in values])


def repeated(values: list[str | None], counts: bytes) -> Column:
    """Copy strings, each repeated as often as an int64 of `counts` says.

    Raises UnicodeEncodeError, OverflowError.
    """
    each = [None if value is None else value.encode() for value in values]
    return _column(list(chain.from_iterable(map(repeat, each, _repeats(counts)))))


def chosen(values: list[str | None], indexes: Data) -> Column:
    """Copy the strings that some int32 choose, one per row.

    Raises UnicodeEncodeError, OverflowError, ValueError for an index out of range.
    """
    each = [None if value is None else value.encode() for value in values]
    rows = array("i", bytes(indexes))
    for row, index in enumerate(rows):
        if not 0 <= index < len(each):
            raise ValueError(f"index in row {row} out of range")
    return _column([each[index] for index in rows])


def _repeats(counts: Data) -> array[int]:
    times = array("q", bytes(counts))
    if any(not 0 <= number <= MAX_INT32 for number in times) or sum(times) > MAX_INT32:
        raise OverflowError("repeat count out of range")
    return times


def viewed(views: bytearray, valid: bytearray, rows: int, buffers: list[bytes]) -> Column:
    """Copy the values of views (see `records.columns`).

    valid: one bit per row, or empty if no row is null. Raises ValueError for a view out of range,
    OverflowError.
    """
    if rows > len(views) // 16 or 0 < len(valid) < (rows + 7) // 8:
        raise ValueError(f"buffers too small for {rows} rows")
    present = [not valid or valid[row >> 3] >> (row & 7) & 1 for row in range(rows)]
    values: list[bytes | None] = [
        _view_value(views, row, buffers) if is_present else None
        for row, is_present in enumerate(present)
    ]
    return _column(values)


def _view_value(views: bytearray, row: int, buffers: list[bytes]) -> bytes:
    size, buffer, start = map(int, VIEW.unpack_from(views, row * 16))
    if 0 <= size <= IN_VIEW:
        return bytes(views[row * 16 + 4 : row * 16 + 4 + size])
    if size > 0 and 0 <= buffer < len(buffers) and 0 <= start <= len(buffers[buffer]) - size:
        return buffers[buffer][start : start + size]
    raise ValueError(f"view in row {row} out of range")


def _column(values: list[bytes | None]) -> Column:
    ends = list(accumulate((len(value or b"") for value in values), initial=0))
    if ends[-1] > MAX_INT32:
        raise OverflowError(f"column of {ends[-1]} bytes exceeds Arrow's limit of 2 GiB")
    valid = bits(bytes(value is not None for value in values)) if None in values else None
    data = bytearray().join(value or b"" for value in values)
    return bytearray(array("i", ends).tobytes()), data, valid


# -- numbers


def bits(flags: Data) -> bytearray:
    """Make a bit of each flag, lowest first."""
    bitmap = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        bitmap[index >> 3] |= (flag != 0) << (index & 7)
    return bitmap


def copies(values: Data, width: int, counts: Data) -> bytearray:
    """Copy numbers of `width` bytes, each as often as an int64 of `counts` says.

    Raises OverflowError; ValueError unless there is a count for each.
    """
    if width not in (1, 2, 4, 8) or len(values) != len(counts) // 8 * width:
        raise ValueError("copies() expects a count for each value")
    times = _repeats(counts)
    return bytearray().join(
        bytes(values[index * width : (index + 1) * width]) * count
        for index, count in enumerate(times)
    )


def times(numbers: Data, flags: Data, is_ms: bool) -> tuple[bytearray, bytearray]:
    """Make timestamps in microseconds of nanoseconds, or of milliseconds, since the epoch.

    flags: of the numbers, empty if none is null. Returns flags, too: 0 if out of range. Raises
    ValueError.
    """
    if flags and len(flags) != len(numbers) // 8:
        raise ValueError("times() expects a flag for each value")
    milliseconds = array("q", bytes(numbers))
    micros = [number * 1000 if is_ms else number // 1000 for number in milliseconds]
    valid = bytearray(
        0 <= time <= LAST_TIME and is_valid != 0
        for time, is_valid in zip(micros, flags or repeat(1), strict=False)
    )
    shown = [time if is_valid else 0 for time, is_valid in zip(micros, valid, strict=True)]
    return bytearray(array("q", shown).tobytes()), valid


def sequences(first: Data, base: Data, counts: Data, offsets: Data) -> bytearray:
    """Return the producer's sequences of records as int32: -1 if there is none.

    first, base: the sequence and the offset of the first record of each batch. counts: its records.
    offsets: of each record. Raises ValueError.
    """
    times = array("q", bytes(counts))
    is_valid = len(first) == len(base) == len(counts) and all(count >= 0 for count in times)
    if not is_valid or sum(times) > len(offsets) // 8:
        raise ValueError("buffers too small for all rows")
    indexes = array("i")
    rest = iter(array("q", bytes(offsets)))
    for sequence, start, count in zip(
        array("q", bytes(first)), array("q", bytes(base)), times, strict=True
    ):
        for offset in islice(rest, count):
            indexes.append(-1 if sequence < 0 else (sequence + offset - start) & 0x7FFFFFFF)
    return bytearray(indexes.tobytes())
