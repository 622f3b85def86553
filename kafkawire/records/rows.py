"""Adds records to columns: the interpreted version of `rows.c`.

`rows.c` adds a record as `column_decoding.add_record` would, or stops before it. This module
stops before every record, so `column_decoding` alone defines the result, and C only makes it
faster.
"""


def room(size: int) -> bytearray:
    """Make a buffer with undefined content."""
    return bytearray(size)


def add_rows(  # noqa: PLR0913 - as `rows.c` takes them
    data: bytes,  # noqa: ARG001
    pos: int,
    end: int,  # noqa: ARG001
    row: int,
    last: int,  # noqa: ARG001
    base_offset: int,  # noqa: ARG001
    base_timestamp: int,  # noqa: ARG001
    buffer: int,  # noqa: ARG001
    headers: int,
    header_room: int,  # noqa: ARG001
    buffers: tuple[bytearray, ...],  # noqa: ARG001
) -> tuple[int, int, int, int, int, int]:
    """Add records in `data[pos:end]` as rows from `row` to before `last`, as far as possible.

    headers, header_room: number of headers so far, and allocated.
    buffers: see `Columns.memory`; each long enough, or empty if its column has no memory yet.

    Returns the row and the position reached, how many of the keys and values added are null, how
    many headers there are now, and how many null values they added.
    """
    return row, pos, 0, 0, headers, 0
