"""Record batches of `ExchangeColumns`."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from .arrays import lists_of, times_of, topic_lists, topic_partition_lists
from .columns import array_of, schema_of
from .exchanges import COLUMNS

SCHEMA: Final = schema_of(COLUMNS)
BY_NAME: Final = {column.name: column for column in COLUMNS}
TIMES: Final = {"time": "time_ns", "response_time": "response_time_ns"}
"""Columns that are made of others."""

VALUES: Final = [column for column in COLUMNS if column.name not in TIMES]
LISTS: Final = frozenset({"error_codes", "errors", "group_ids", "transactional_ids"})


def exchange_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Make a record batch of rows as `ExchangeColumns` has them, at least one."""
    made: dict[str, pa.Array] = {}
    for column, values in zip(VALUES, zip(*rows, strict=True), strict=True):
        if column.name in LISTS:
            made[column.name] = lists_of(values, column.type)
        elif column.name == "topics":
            made[column.name] = topic_lists(values, column.type)
        elif column.name == "partitions":
            made[column.name] = topic_partition_lists(values)
        else:
            made[column.name] = array_of(column, list(values))
    for time, time_ns in TIMES.items():
        made[time] = times_of(made[time_ns])
    return pa.RecordBatch.from_arrays([made[name] for name in SCHEMA.names], schema=SCHEMA)
