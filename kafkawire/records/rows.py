"""Rows of columns from the records of one batch: what `rows.c` does, where no compiler made it.

Law: `rows.c` adds what `column_decoding.add_record` would, or stops before the record and leaves it
to that. This module stops before every record: so what columns are is said by `column_decoding`
alone, and C only makes it quick.
"""


def room(size: int) -> bytearray:
    """Make a buffer whose bytes are all written before any is read."""
    return bytearray(size)


def add_rows(
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
    """Add records in `data[pos:end]` as rows from `row` to before `last`, as far as can be.

    headers, header_room: how many there are already, and how many there is room for.
    buffers: see `Columns.memory`; each long enough, or empty where its column has no memory yet.

    Returns the row and the position reached, how many of the keys and values added are null, how
    many headers there are now, and how many null values they added.
    """
    return row, pos, 0, 0, headers, 0
