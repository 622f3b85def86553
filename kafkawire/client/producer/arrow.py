"""Reads the columns of records to send. The only module here that imports pyarrow.

key, value: binary or string │ partition: integer, null is the partitioner's choice │
timestamp: timestamp, or milliseconds as an integer, null is now │
headers: list of structs `key`, `value`, and perhaps `key_bytes`, as consumed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ...errors import InvalidValue, OutOfRange
from ...extras import requires
from ...records import Headers, ReplacedText

with requires("pyarrow", "tables"):
    import pyarrow as pa
    import pyarrow.compute as pc

MILLISECONDS: Final = pa.timestamp("ms")


class SendColumns(NamedTuple):
    """The columns of records to send, as Python values of the same number."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None]
    timestamps: Sequence[int]
    headers: Sequence[Headers]


def send_columns(batch: object, now_ms: int) -> SendColumns:
    """Read the columns of a batch; those that are missing are null.

    now_ms: the timestamp of records without one. Raises InvalidValue, OutOfRange.
    """
    if not isinstance(batch, pa.RecordBatch):
        kind = type(batch).__name__
        raise InvalidValue(f"expected pyarrow.RecordBatch, got {kind}", "batch")
    names = batch.schema.names
    unknown = [name for name in names if name not in READERS]
    if unknown:
        raise InvalidValue(f"unknown column {unknown[0]!r}: expected {', '.join(READERS)}", "batch")
    if len(set(names)) < len(names):
        raise InvalidValue(f"columns with the same name: {', '.join(sorted(names))}", "batch")
    rows = batch.num_rows
    columns = [
        read(batch.column(name), name) if name in names else [default] * rows
        for name, (read, default) in READERS.items()
    ]
    keys, values, partitions, timestamps, headers = columns
    return SendColumns(
        keys,
        values,
        partitions,
        [now_ms if time is None else time for time in timestamps],
        headers,
    )


def _bytes(column: pa.Array, name: str) -> list[bytes | None]:
    """Read bytes or text, without a scalar of Arrow for each."""
    column = _cast(column, pa.binary(), name, "binary or string")
    rows = len(column)
    _, ends, data = column.buffers()
    if not rows or column.null_count == rows:
        return [None] * rows
    bounds = memoryview(ends).cast("i")[column.offset : column.offset + rows + 1].tolist()
    first = bounds[0]  # not 0 in a slice, whose buffers are those of the whole
    raw = b"" if data is None else data.slice(first, bounds[-1] - first).to_pybytes()
    if first:
        bounds = [bound - first for bound in bounds]
    return _with_nulls([raw[start:end] for start, end in pairwise(bounds)], column)


def _partitions(column: pa.Array, name: str) -> list[int | None]:
    return _numbers(_cast(column, pa.int32(), name, "integer"), name, "i")


def _timestamps(column: pa.Array, name: str) -> list[int | None]:
    if pa.types.is_timestamp(column.type):
        to = pa.timestamp("ms", column.type.tz)
        column = column.cast(to, safe=False)  # to whole milliseconds
    return _numbers(_cast(column, pa.int64(), name, "timestamp or integer"), name, "q")


def _numbers(column: pa.Array, name: str, form: Any) -> list[int | None]:
    rows = len(column)
    if not rows or column.null_count == rows:
        return [None] * rows
    lowest = pc.min(column).as_py()
    if lowest < 0:
        raise OutOfRange(f"{lowest} is negative", f"batch.{name}")
    numbers = memoryview(column.buffers()[1]).cast("B").cast(form)
    return _with_nulls(numbers[column.offset : column.offset + rows].tolist(), column)


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    if not column.null_count:
        return values
    valid = column.is_valid().to_pylist()
    return [value if here else None for value, here in zip(values, valid, strict=True)]


def _headers(column: pa.Array, name: str) -> list[Headers]:
    """Read headers: an object for each."""
    where = f"batch.{name}"
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_struct(kind.value_type):
        raise InvalidValue(f"expected list of structs key, value; got {kind}", where)
    fields = {field.name for field in kind.value_type}
    if not {"key", "value"} <= fields <= {"key", "value", "key_bytes"}:
        raise InvalidValue(f"expected list of structs key, value; got {kind}", where)
    return [
        tuple(_header(header, where) for header in headers or ()) for headers in column.to_pylist()
    ]


def _header(header: dict[str, Any] | None, where: str) -> tuple[str, bytes | None]:
    if header is None or not isinstance(header["key"], str):
        raise InvalidValue("a header without a key", where)
    key, value = header["key"], header["value"]
    raw = header.get("key_bytes")
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes | None) or not isinstance(raw, bytes | None):
        raise InvalidValue(f"expected binary, got {type(value).__name__}", where)
    return key if raw is None else ReplacedText(raw), value


def _cast(column: pa.Array, to: pa.DataType, name: str, expected: str) -> pa.Array:
    """Convert a column without loss. Raises InvalidValue, OutOfRange."""
    if column.type == to:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), to)
    has_numbers = pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)
    if pa.types.is_integer(to) != has_numbers:
        raise InvalidValue(f"expected {expected}, got {column.type}", f"batch.{name}")
    try:
        return column.cast(to)
    except pa.ArrowNotImplementedError:
        raise InvalidValue(f"expected {expected}, got {column.type}", f"batch.{name}") from None
    except pa.ArrowInvalid as error:
        raise OutOfRange(str(error), f"batch.{name}") from None


READERS: Final[dict[str, tuple[Callable[[pa.Array, str], list[Any]], Any]]] = {
    "key": (_bytes, None),
    "value": (_bytes, None),
    "partition": (_partitions, None),
    "timestamp": (_timestamps, None),
    "headers": (_headers, ()),
}
"""Column -> what reads it, and the value of each row without it."""

RESULT: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
    ]
)
"""Where the record of each row is; offset -1 if the broker did not report it (acks=0)."""


def result_batch(partitions: Sequence[int], offsets: Sequence[int]) -> pa.RecordBatch:
    """Make the result of records that were sent."""
    return pa.RecordBatch.from_arrays(
        [pa.array(partitions, pa.int32()), pa.array(offsets, pa.int64())], schema=RESULT
    )
