"""Makes Arrow record batches of fetched columns. The only module here that imports pyarrow.

Columns are those of the table `records` of captures with the same names. They are made of whole
batches, without an object per record; keys, values and headers are copied once.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ...capture.tables.records import COLUMNS
from ...extras import requires
from ...records import Columns
from ...values.record_values import RecordValues
from .columns import FetchedColumns
from .partitions import TopicPartition

with requires("pyarrow", "tables"):
    import pyarrow as pa

    from ...capture.tables.arrow.arrays import (
        from_views,
        numbers,
        repeated_numbers,
        repeated_texts,
        times_of_ms,
    )
    from ...capture.tables.arrow.record_columns import header_lists
    from ...capture.tables.arrow.schemas import schema_of
    from ...capture.tables.decoded_values import schema, with_values

NAMES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
SCHEMA: Final = schema_of(tuple(column for column in COLUMNS if column.name in NAMES))
"""One row per record. timestamp: null for none, or after the year 9999."""

COUNT: Final = Struct("<q")
PARTITION: Final = Struct("<i")


def batch_schema(values: RecordValues) -> pa.Schema:
    """Return the columns of batches, with those of decoded keys and values."""
    return schema(SCHEMA, values)


def decoded(batch: pa.RecordBatch, values: RecordValues) -> pa.RecordBatch:
    """Add columns of decoded keys and values to a batch: an object per key and value."""
    return with_values(batch, values)


class ArrowBatches:
    """Makes batches of the fetched columns of one consumer.

    Columns that are returned in several parts are converted once.
    """

    def __init__(self) -> None:
        self._last: tuple[Columns, pa.RecordBatch] | None = None

    def batch(self, fetched: FetchedColumns) -> pa.RecordBatch:
        """Make a batch of fetched records."""
        columns = fetched.columns
        if fetched.rows == columns.rows:
            return _converted(fetched.partition, columns)
        if self._last is None or self._last[0] is not columns:
            self._last = columns, _converted(fetched.partition, columns)
        batch = self._last[1].slice(fetched.start, fetched.rows)
        if fetched.stop == columns.rows:
            self._last = None
        return batch


def _converted(partition: TopicPartition, columns: Columns) -> pa.RecordBatch:
    rows, buffers = columns.rows, columns.buffers
    count = COUNT.pack(rows)
    types = {field.name: field.type for field in SCHEMA}
    number = PARTITION.pack(partition.partition)
    arrays = {
        "topic": repeated_texts([partition.topic], count),
        "partition": repeated_numbers(types["partition"], number, None, count),
        "offset": numbers(types["offset"], columns.offset.numbers, rows),
        "timestamp": times_of_ms(memoryview(columns.timestamp.numbers)[: 8 * rows]),
        "key": from_views(types["key"], columns.key, rows, buffers),
        "value": from_views(types["value"], columns.value, rows, buffers),
        "headers": header_lists(columns),
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)
