"""Builds Arrow schemas, arrays and record batches of columns.

The child of a list is named `element`, as in Spark; every column is nullable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from ..columns import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    ListOf,
    StructOf,
    Type,
    printable,
)

PLAIN: Final[dict[str, pa.DataType]] = {
    BOOL: pa.bool_(),
    INT8: pa.int8(),
    INT16: pa.int16(),
    INT32: pa.int32(),
    INT64: pa.int64(),
    FLOAT64: pa.float64(),
    TEXT: pa.string(),
    BYTES: pa.binary(),
    TIME: pa.timestamp("us", tz="UTC"),
}
"""The Arrow types of single values."""


def arrow_type(type: Type) -> pa.DataType:
    """Return the Arrow type of a column's type."""
    if isinstance(type, ListOf):
        return pa.list_(pa.field("element", arrow_type(type.element)))
    if isinstance(type, StructOf):
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in type.fields])
    return PLAIN[type]


def schema_of(columns: Columns) -> pa.Schema:
    """Build the Arrow schema; every column is nullable, as in Spark."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def batches(
    columns: Columns,
    rows: Iterable[tuple[Any, ...]],
    size: int,
    before: Callable[[], None],
) -> Iterator[pa.RecordBatch]:
    """Collect rows, tuples in the order of the columns, into record batches of at most `size` rows.

    before: called before each batch is made, so that topic names can be looked up.
    """
    schema = schema_of(columns)
    rest = iter(rows)
    while chunk := list(islice(rest, size)):
        before()
        values = zip(*chunk, strict=True)
        yield pa.RecordBatch.from_arrays(
            [resolved(column, v) for column, v in zip(columns, values, strict=True)],
            schema=schema,
        )


def resolved(column: Column, values: Sequence[Any]) -> pa.Array:
    """Build the array of a column; its values are resolved first."""
    if column.resolve is not None:
        values = [None if value is None else column.resolve(value) for value in values]
    return array_of(arrow_type(column.type), values)


def array_of(type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Build an array."""
    try:
        return pa.array(values, type)
    except UnicodeEncodeError:  # text that was not valid UTF-8 on the wire
        return pa.array([printable(value) for value in values], type)
