"""Copies values into Arrow's memory layout; the pure Python version of `values.c`.

Law: both produce the same bytes.

    ends    0 | the end of each value: int32        data    the concatenated values
    valid   one bit per value, lowest first; None if no value is null
"""

from __future__ import annotations

from itertools import chain, repeat
from struct import Struct
from typing import Final

import numpy as np

Column = tuple[bytearray, bytearray, bytearray | None]
"""ends, data, valid"""

VIEW: Final = Struct("<i4xii")
IN_VIEW: Final = 12
MAX_INT32: Final = 0x7FFFFFFF


def texts(values: list[str | None]) -> Column:
    """Copy strings. Raises UnicodeEncodeError, OverflowError."""
    return _column([None if value is None else value.encode() for value in values])


def repeated(values: list[str | None], counts: bytes) -> Column:
    """Copy strings, each repeated as often as an int64 of `counts` says.

    Raises UnicodeEncodeError, OverflowError.
    """
    each = [None if value is None else value.encode() for value in values]
    times = np.frombuffer(counts, np.int64).tolist()
    if any(number < 0 for number in times):
        raise OverflowError("repeat count out of range")
    return _column(list(chain.from_iterable(map(repeat, each, times))))


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
    sizes = np.array([len(value or b"") for value in values], np.int64)
    size = int(sizes.sum())
    if size > MAX_INT32:
        raise OverflowError(f"column of {size} bytes exceeds Arrow's limit of 2 GiB")
    ends = np.zeros(len(values) + 1, "<i4")
    np.cumsum(sizes, out=ends[1:])
    valid = None
    if None in values:
        present = np.array([value is not None for value in values], np.bool_)
        valid = bytearray(np.packbits(present, bitorder="little"))
    return bytearray(ends), bytearray().join(value or b"" for value in values), valid
