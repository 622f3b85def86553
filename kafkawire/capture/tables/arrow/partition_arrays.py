"""Builds record batches of `PartitionColumns`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from ....protocol.error_code import ErrorCode
from ..columns import BOOL, INT32
from ..extraction.blocks import NO_SESSION
from ..extraction.steps import NAMES
from ..partitions import COLUMNS
from .arrays import bitmap, booleans, numbers, repeated_numbers, repeated_texts, texts, times
from .exchange_arrays import HEAD_NUMBERS, HEAD_TEXTS
from .partition_columns import PartitionValues
from .schemas import PLAIN, schema_of

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}
WIDTHS: Final = bytes(
    [TYPES[name].bit_width // 8 if pa.types.is_integer(TYPES[name]) else 0 for name in NAMES]
)


def partition_batch(filled: PartitionValues) -> pa.RecordBatch:
    """Build a record batch of at least one row."""
    counts = np.frombuffer(filled.counts.getvalue(), np.int64)
    heads = filled.heads
    made: dict[str, pa.Array] = {}
    for name in HEAD_NUMBERS:
        column = getattr(heads, name)
        found = column.values.getvalue(), column.valid.getvalue()
        made[name], repeated, valid = repeated_numbers(TYPES[name], *found, counts)
        if name == "time_ns":
            made["time"] = times(np.where(valid, repeated, -1))
    for name in HEAD_TEXTS:
        made[name] = repeated_texts(getattr(heads, name), counts)
    topics, groups, partitions, requested, responded, in_session, columns = filled.rows.take(WIDTHS)
    known = {topic: (topic.name, topic.id_text) for topic in dict.fromkeys(topics)}
    named = [known[topic] for topic in topics]
    made["group_id"] = texts(groups)
    made["topic"] = texts([name for name, _ in named])
    made["topic_id"] = texts([id for _, id in named])
    made["partition"] = numbers(PLAIN[INT32], np.frombuffer(partitions, np.int32))
    made["requested"] = booleans(np.frombuffer(requested, np.bool_))
    made["responded"] = booleans(np.frombuffer(responded, np.bool_))
    made["in_session"] = _in_session(np.frombuffer(in_session, np.uint8))
    rows = len(topics)
    for name, values in zip(NAMES, columns, strict=True):
        made[name] = _column(name, values, rows)
    made["error"] = _errors(made["error_code"], rows)
    return pa.RecordBatch.from_arrays([made[name] for name in SCHEMA.names], schema=SCHEMA)


def _column(name: str, values: Any, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, TYPES[name])
    if isinstance(values, list):
        return texts(values)
    data, valid = values
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(TYPES[name], rows, buffers)


def _in_session(values: Any) -> pa.Array:
    bits = pa.py_buffer(np.packbits(values == 1, bitorder="little"))
    return pa.Array.from_buffers(PLAIN[BOOL], len(values), [bitmap(values != NO_SESSION), bits])


def _errors(codes: pa.Array, rows: int) -> pa.Array:
    """Name the errors; null for none."""
    if codes.null_count == rows:
        return pa.nulls(rows, TYPES["error"])
    found = np.frombuffer(codes.buffers()[1], np.int16)
    if not found.any():
        return pa.nulls(rows, TYPES["error"])
    names = {code: ErrorCode.name_of(code) if code else None for code in np.unique(found).tolist()}
    return texts([names[code] for code in found.tolist()])
