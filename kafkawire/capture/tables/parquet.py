"""Chooses Parquet encodings and statistics for the columns of tables.

The choice depends only on the column type, so that all writers of a table produce the same
files.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def repeating_columns(schema: pa.Schema) -> Iterator[str]:
    """List the columns with repeating values, for dictionary encoding: not times and counters."""

    def leaves(path: str, type: pa.DataType) -> Iterator[str]:
        if pa.types.is_list(type):
            yield from leaves(f"{path}.list.element", type.value_type)
        elif pa.types.is_struct(type):
            for field in type:
                yield from leaves(f"{path}.{field.name}", field.type)
        elif not pa.types.is_primitive(type) or type.bit_width != 64:
            yield path

    for field in schema:
        yield from leaves(field.name, field.type)


def columns_with_statistics(schema: pa.Schema) -> list[str]:
    """List the columns whose minimum and maximum help to skip row groups: numbers and times.

    Rows are in the order of the capture, so each row group has most of the texts.
    """
    return [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
    ]
