"""Makes Arrow arrays of record columns. The only module here that imports pyarrow.

Keys, values and headers of more than 12 bytes are not copied; the arrays keep the buffers
alive that they point into.

Views (`binary_view`, `string_view`) are the only layout that can point into a batch, where values
are not contiguous. Arrow writes them (Parquet, IPC) and casts them; some of its kernels (take,
filter) do not support views yet: cast to `PLAIN_SCHEMA` for those, at about the cost of making the
views.
"""

from __future__ import annotations

from typing import Final

from ..extras import requires

with requires("pyarrow", "tables"):
    import pyarrow as pa

HEADER: Final = pa.struct(
    [
        pa.field("key", pa.string_view(), nullable=False),
        pa.field("value", pa.binary_view()),
        pa.field("key_bytes", pa.binary_view()),
    ]
)
"""key_bytes: the bytes of a key that is not UTF-8 and has U+FFFD in it instead, else null."""

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
                            pa.field("key_bytes", pa.binary()),
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


def record_batch(arrays: list[pa.Array]) -> pa.RecordBatch:
    """Make a batch of arrays in the order of `SCHEMA`."""
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def memory(taken: bytes | bytearray, size: int) -> pa.Buffer:
    """Make a buffer of the first `size` bytes, which keeps them alive."""
    buffer = pa.py_buffer(taken)
    return buffer if len(taken) == size else buffer.slice(0, size)


def int32_buffer(rows: int, numbers: bytearray) -> pa.Buffer:
    """Make a buffer of int32: zeros if the column has no memory."""
    return memory(numbers, 4 * rows) if numbers else pa.py_buffer(bytes(4 * rows))


def int32_array(rows: int, numbers: bytearray) -> pa.Array:
    """Make an array of int32: zeros if the column has no memory."""
    return pa.Array.from_buffers(INT32, rows, [None, int32_buffer(rows, numbers)], 0)


def int64_array(rows: int, numbers: bytearray) -> pa.Array:
    """Make an array of int64."""
    return pa.Array.from_buffers(INT64, rows, [None, memory(numbers, 8 * rows)], 0)


def view_array(
    type: pa.DataType,
    rows: int,
    words: bytearray,
    valid: bytearray,
    nulls: int,
    data: list[pa.Buffer],
) -> pa.Array:
    """Make an array of views into `data`."""
    if nulls == rows:
        return pa.nulls(rows, type)
    valid_buffer = memory(valid, rows // 8 + 1) if nulls else None
    return pa.Array.from_buffers(type, rows, [valid_buffer, memory(words, 16 * rows), *data], nulls)


def key_arrays(
    rows: int, words: bytearray, data: list[pa.Buffer], invalid: list[int]
) -> tuple[pa.Array, pa.Array]:
    """Make the arrays `key` and `key_bytes` of headers; invalid: the rows that are not UTF-8."""
    if invalid:
        return replaced_texts(view_array(BYTES, rows, words, bytearray(), 0, data), invalid, TEXT)
    return view_array(TEXT, rows, words, bytearray(), 0, data), pa.nulls(rows, BYTES)


def replaced_texts(
    raw: pa.Array, invalid: list[int], type: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Decode an array of bytes, of which those at `invalid` are not UTF-8.

    Returns the texts, with U+FFFD in place of invalid bytes, and the bytes of the invalid ones.
    """
    values = raw.to_pylist()
    texts = pa.array([value.decode("utf-8", "replace") for value in values], type)
    invalid_bytes: list[bytes | None] = [None] * len(values)
    for row in invalid:
        invalid_bytes[row] = values[row]
    return texts, pa.array(invalid_bytes, raw.type)


def header_array(rows: int, ends: bytearray, fields: list[pa.Array]) -> pa.Array:
    """Make the array of each row's headers; `ends`: where those of each row end."""
    children = pa.StructArray.from_arrays(fields, fields=list(HEADER))
    all_ends = int32_buffer(rows + 1, ends)
    return pa.Array.from_buffers(HEADERS, rows, [None, all_ends], 0, children=[children])
