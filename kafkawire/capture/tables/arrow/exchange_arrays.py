"""Builds record batches of `ExchangeColumns`."""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np
import pyarrow as pa

from ....protocol.error_code import ErrorCode
from ..columns import INT16
from ..exchanges import COLUMNS
from .arrays import (
    lists,
    nullable_booleans,
    nullable_numbers,
    numbers,
    texts,
    times,
    topic_lists,
    topic_partition_lists,
)
from .buffers import Lists, Numbers
from .exchange_columns import ExchangeValues
from .schemas import PLAIN, schema_of

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}

HEAD_NUMBERS: Final = (
    "packet",
    "time_ns",
    "connection",
    "api_key",
    "api_version",
    "correlation_id",
    "response_packet",
)
HEAD_TEXTS: Final = ("file", "client", "broker", "api_name", "client_id", "response_file")
"""Columns of `ExchangeHeads`."""

NUMBERS: Final = (
    "request_bytes",
    "response_time_ns",
    "response_bytes",
    "latency_ns",
    "throttle_time_ms",
)
TEXTS: Final = ("request_status", "response_status")


def exchange_batch(filled: ExchangeValues) -> pa.RecordBatch:
    """Build a record batch of at least one row."""
    heads = filled.heads
    made = {name: _numbers(name, getattr(heads, name)) for name in HEAD_NUMBERS}
    made |= {name: texts(getattr(heads, name)) for name in HEAD_TEXTS}
    made |= {name: _numbers(name, getattr(filled, name)) for name in NUMBERS}
    made |= {name: texts(getattr(filled, name)) for name in TEXTS}
    made["time"] = _times(heads.time_ns)
    made["response_time"] = _times(filled.response_time_ns)
    codes = filled.error_codes
    made["error_codes"] = _lists(
        "error_codes", codes, numbers(PLAIN[INT16], array("h", codes.items))
    )
    names = texts([ErrorCode.name_of(code) for code in codes.items])
    made["errors"] = _lists("errors", codes, names)
    for name, column in (
        ("group_ids", filled.group_ids),
        ("transactional_ids", filled.transactional_ids),
    ):
        made[name] = _lists(name, column, texts(column.items))
    topics, requested = filled.topics, filled.partitions
    made["topics"] = topic_lists(TYPES["topics"], topics.ends.getvalue(), topics.items)
    made["partitions"] = topic_partition_lists(
        TYPES["partitions"], requested.ends.getvalue(), requested.items
    )
    made["partitions_complete"] = nullable_booleans(
        filled.complete.getvalue(), filled.is_fetch.getvalue()
    )
    return pa.RecordBatch.from_arrays([made[name] for name in SCHEMA.names], schema=SCHEMA)


def _numbers(name: str, column: Numbers) -> pa.Array:
    return nullable_numbers(TYPES[name], column.values.getvalue(), column.valid.getvalue())


def _lists(name: str, column: Lists, items: pa.Array) -> pa.Array:
    return lists(TYPES[name], column.ends.getvalue(), items)


def _times(column: Numbers) -> pa.Array:
    time_ns = np.frombuffer(column.values.getvalue(), np.int64)
    valid = np.frombuffer(column.valid.getvalue(), np.bool_)
    return times(np.where(valid, time_ns, -1))
