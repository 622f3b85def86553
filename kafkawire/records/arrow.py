"""Columns as Arrow arrays. The only importer of pyarrow here.

Law: no byte of a key, value or header is copied but into a view of 12 bytes or less; the arrays
hold on to the buffers they point into.

Views (`binary_view`, `string_view`) are the one layout that can point into a batch, where values
stand apart; measured against copying them into `binary`, they cost half. `array.cast(pa.binary())`
copies for readers that know no views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ..errors import InvalidText

if TYPE_CHECKING:
    from .columns import Columns, Views

HEADER: Final = pa.struct(
    [pa.field("key", pa.string_view(), nullable=False), pa.field("value", pa.binary_view())]
)

SCHEMA: Final = pa.schema(
    [
        pa.field("batch", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary_view()),
        pa.field("value", pa.binary_view()),
        pa.field("headers", pa.list_(pa.field("item", HEADER, nullable=False)), nullable=False),
    ]
)
"""One row a record. batch: its batch's index in the field; timestamp: milliseconds, -1 for none."""

INT32, INT64, BYTES, TEXT = pa.int32(), pa.int64(), pa.binary_view(), pa.string_view()
HEADERS: Final = SCHEMA.field("headers").type
NO_HEADERS: Final = pa.array([], HEADER)


def record_batch(columns: Columns) -> pa.RecordBatch:
    """Make Arrow arrays of the columns, by `SCHEMA`; InvalidText if a header's key is not UTF-8."""
    rows = int(columns.rows)
    data = [pa.py_buffer(buffer) for buffer in columns.buffers]
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(INT32, rows, [None, pa.py_buffer(columns.batch)], 0),
            pa.Array.from_buffers(INT64, rows, [None, pa.py_buffer(columns.offset)], 0),
            pa.Array.from_buffers(INT64, rows, [None, pa.py_buffer(columns.timestamp)], 0),
            view_array(BYTES, rows, columns.key, data),
            view_array(BYTES, rows, columns.value, data),
            header_array(rows, columns, data),
        ],
        schema=SCHEMA,
    )


def view_array(type: pa.DataType, rows: int, views: Views, data: list[pa.Buffer]) -> pa.Array:
    """Make an array of views into `data`."""
    nulls = int(views.nulls)
    valid = pa.py_buffer(views.valid) if nulls else None
    return pa.Array.from_buffers(type, rows, [valid, pa.py_buffer(views.words), *data], nulls)


def header_array(rows: int, columns: Columns, data: list[pa.Buffer]) -> pa.Array:
    """Make the array of each row's headers."""
    count = int(columns.headers)
    children = NO_HEADERS
    if count:
        keys = view_array(TEXT, count, columns.header_key, data)
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidText(f"the key of a header is not UTF-8: {error}") from None
        values = view_array(BYTES, count, columns.header_value, data)
        children = pa.StructArray.from_arrays([keys, values], fields=list(HEADER))
    ends = pa.py_buffer(columns.header_ends)
    return pa.Array.from_buffers(HEADERS, rows, [None, ends], 0, children=[children])
