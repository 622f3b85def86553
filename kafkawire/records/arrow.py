"""Makes Arrow arrays of record columns. The only module here that imports pyarrow.

Law: keys, values and headers of more than 12 bytes are not copied; the arrays keep the buffers
alive that they point into.

Views (`binary_view`, `string_view`) are the only layout that can point into a batch, where values
are not contiguous. Arrow writes them (Parquet, IPC) and casts them; some of its kernels (take,
filter) do not support views yet: cast to `PLAIN_SCHEMA` for those, at about the cost of making the
views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from .columns import Columns, Steps, Views

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

PLAIN_SCHEMA: Final = pa.schema(
    [
        *(SCHEMA.field(name) for name in ("batch", "offset", "timestamp")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(
                pa.field(
                    "item",
                    pa.struct(
                        [
                            pa.field("key", pa.string(), nullable=False),
                            pa.field("value", pa.binary()),
                        ]
                    ),
                    nullable=False,
                )
            ),
            nullable=False,
        ),
    ]
)
"""The same without views: `columns.cast(PLAIN_SCHEMA)` copies, for kernels without view support."""

INT32, INT64, BYTES, TEXT = pa.int32(), pa.int64(), pa.binary_view(), pa.string_view()
HEADERS: Final = SCHEMA.field("headers").type
NOTHING: Final = pa.py_buffer(b"")
NO_HEADERS: Final = pa.nulls(0, HEADER)


def record_batch(columns: Columns) -> pa.RecordBatch:
    """Make Arrow arrays of the columns, by `SCHEMA`."""
    rows = columns.rows
    data = [pa.py_buffer(buffer) for buffer in columns.buffers]
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(INT32, rows, [None, steps(columns.batch, rows)], 0),
            pa.Array.from_buffers(INT64, rows, [None, memory(columns.offset.numbers, 8 * rows)], 0),
            pa.Array.from_buffers(
                INT64, rows, [None, memory(columns.timestamp.numbers, 8 * rows)], 0
            ),
            view_array(BYTES, rows, columns.key, data),
            view_array(BYTES, rows, columns.value, data),
            header_array(rows, columns, data),
        ],
        schema=SCHEMA,
    )


def memory(taken: bytearray, size: int) -> pa.Buffer:
    """Make a buffer of the first `size` bytes, which keeps them alive."""
    made = pa.py_buffer(taken)
    return made if len(taken) == size else made.slice(0, size)


def steps(column: Steps, rows: int) -> pa.Buffer:
    """Make a buffer of int32: zeros if the column has no memory."""
    return memory(column.numbers, 4 * rows) if column.numbers else pa.py_buffer(bytes(4 * rows))


def view_array(type: pa.DataType, rows: int, views: Views, data: list[pa.Buffer]) -> pa.Array:
    """Make an array of views into `data`."""
    if views.nulls == rows:
        return pa.nulls(rows, type)
    valid = memory(views.valid, rows // 8 + 1) if views.nulls else None
    words = memory(views.words, 16 * rows)
    return pa.Array.from_buffers(type, rows, [valid, words, *data], views.nulls)


def header_array(rows: int, columns: Columns, data: list[pa.Buffer]) -> pa.Array:
    """Make the array of each row's headers."""
    count = columns.headers
    children = NO_HEADERS
    if count:
        keys = view_array(TEXT, count, columns.header_key, data)
        values = view_array(BYTES, count, columns.header_value, data)
        children = pa.StructArray.from_arrays([keys, values], fields=list(HEADER))
    ends = steps(columns.header_ends, rows + 1)
    return pa.Array.from_buffers(HEADERS, rows, [None, ends], 0, children=[children])
