"""Builds record batches of `PartitionColumns`."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from ....protocol.error_code import ErrorCode
from ..columns import INT32
from ..extraction.blocks import NO_SESSION
from ..extraction.steps import NAMES
from ..partitions import COLUMNS
from .arrays import (
    booleans,
    chosen_texts,
    numbers,
    repeated_numbers,
    repeated_texts,
    repeated_times,
    texts,
)
from .exchange_arrays import HEAD_NUMBERS, HEAD_TEXTS
from .partition_columns import PartitionValues
from .schemas import PLAIN, schema_of

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}
WIDTHS: Final = bytes(
    [TYPES[name].bit_width // 8 if pa.types.is_integer(TYPES[name]) else 0 for name in NAMES]
)

IS_SESSION: Final = bytes([flag != NO_SESSION for flag in range(256)])
"""Translates `in_session` to whether it is not null."""


def partition_batch(filled: PartitionValues) -> pa.RecordBatch:
    """Build a record batch of at least one row."""
    counts = filled.counts.getvalue()
    heads = filled.heads
    arrays: dict[str, pa.Array] = {}
    for name in HEAD_NUMBERS:
        column = getattr(heads, name)
        buffers = column.values.getvalue(), column.valid.getvalue()
        arrays[name] = repeated_numbers(TYPES[name], *buffers, counts)
        if name == "time_ns":
            arrays["time"] = repeated_times(*buffers, counts)
    for name in HEAD_TEXTS:
        arrays[name] = repeated_texts(getattr(heads, name), counts)
    topics, groups, partitions, requested, responded, in_session, columns = filled.rows.take(WIDTHS)
    arrays["group_id"] = chosen_texts(*groups)
    arrays["topic"] = chosen_texts([topic.name for topic in topics[0]], topics[1])
    arrays["topic_id"] = chosen_texts([topic.id_text for topic in topics[0]], topics[1])
    arrays["partition"] = numbers(PLAIN[INT32], partitions)
    arrays["requested"] = booleans(requested)
    arrays["responded"] = booleans(responded)
    arrays["in_session"] = booleans(in_session, in_session.translate(IS_SESSION))
    rows = len(requested)
    for name, values in zip(NAMES, columns, strict=True):
        arrays[name] = _column(name, values, rows)
    arrays["error"] = _errors(arrays["error_code"], rows)
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def _column(name: str, values: Any, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, TYPES[name])
    if isinstance(values, list):
        return texts(values)
    data, valid = values
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(TYPES[name], rows, buffers)


def _errors(codes: pa.Array, rows: int) -> pa.Array:
    """Name the errors; null for none."""
    if codes.null_count == rows:
        return pa.nulls(rows, TYPES["error"])
    all_codes = memoryview(codes.buffers()[1]).cast("h").tolist()
    distinct = {code: ErrorCode.name_of(code) if code else None for code in set(all_codes)}
    if not any(distinct):
        return pa.nulls(rows, TYPES["error"])
    return texts(list(map(distinct.get, all_codes)))
