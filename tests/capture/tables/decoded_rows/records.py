"""Makes the rows of `records` of decoded messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkawire.capture.rows import Located
from kafkawire.capture.tables.columns import LAST_TIME, Columns
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.record_batches import (
    RECORDS_MESSAGES,
    CorruptRecords,
    batches_in,
    records_fields,
)
from kafkawire.capture.tables.records import COLUMNS, DIRECTION, hidden_value, is_metadata
from kafkawire.records import Batch, Record
from kafkawire.records.replaced_text import header_row

HEADERLESS: Final[list[dict[str, Any]]] = []
AT: Final = {column.name: at for at, column in enumerate(COLUMNS)}


class Sink:
    """Collects values column by column, for tables whose rows come many at a time."""

    def __init__(self, columns: Columns) -> None:
        self.values: list[list[Any]] = [[] for _ in columns]

    def __len__(self) -> int:
        return len(self.values[0])

    def repeat(self, first: int, values: Sequence[Any], rows: int) -> None:
        """Add values that a number of rows share, to the columns from `first` on."""
        for at, value in enumerate(values):
            if rows == 1:
                self.values[first + at].append(value)
            else:
                self.values[first + at] += [value] * rows

    def drop(self, rows: int) -> None:
        """Remove the first rows."""
        for values in self.values:
            del values[:rows]


def micros_of_ms(time_ms: int) -> int | None:
    """Convert Kafka's milliseconds since the epoch to a timestamp."""
    time_us = time_ms * 1000
    return time_us if 0 <= time_us <= LAST_TIME else None


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Build the rows of the table."""
    sink = Sink(COLUMNS)
    for _ in fill(context, sink):
        yield from zip(*sink.values, strict=True)
        sink.drop(len(sink))


def fill(context: Context, sink: Sink) -> Iterator[None]:
    """Build the rows of the table, column by column, and yield after each message."""
    for item in context.located():
        if not isinstance(item, Located) or item.row.message is None:
            continue
        row = item.row
        if (row.api_key, row.direction) not in RECORDS_MESSAGES:
            continue
        for field in records_fields(row, context.names):
            hidden = not context.secrets and is_metadata(field)
            where = (
                *context.where(row, *item[:3]),
                DIRECTION[row.api_key or 0],
                row.client_id,
                row.correlation_id,
                field.topic,
                field.topic.id_text,
                field.partition,
            )
            for found in batches_in(field):
                if not isinstance(found, CorruptRecords):
                    batch, records = found
                    add(sink, where, batch, hidden_content(records) if hidden else records)
        yield


def hidden_content(records: list[Record]) -> list[Record]:
    """Replace keys, values and header values by their sizes."""
    return [
        Record(
            record.offset,
            record.timestamp,
            _hidden(record.key),
            _hidden(record.value),
            tuple([(key, _hidden(value)) for key, value in record.headers]),
        )
        for record in records
    ]


def _hidden(data: bytes | None) -> bytes | None:
    shown = hidden_value(data)
    return None if shown is None else shown.encode()


def add(sink: Sink, where: tuple[Any, ...], batch: Batch, records: list[Record]) -> None:
    """Add the records of a batch."""
    count = len(records)
    if not count:
        return
    sink.repeat(0, where, count)
    values = sink.values
    values[AT["offset"]] += [record.offset for record in records]
    values[AT["timestamp"]] += [
        None if record.timestamp < 0 else micros_of_ms(record.timestamp) for record in records
    ]
    values[AT["timestamp_ms"]] += [record.timestamp for record in records]
    values[AT["key"]] += [record.key for record in records]
    values[AT["value"]] += [record.value for record in records]
    values[AT["headers"]] += [
        [header_row(key, value) for key, value in record.headers] if record.headers else HEADERLESS
        for record in records
    ]
    values[AT["sequence"]] += [batch.sequence(record.offset) for record in records]
    sink.repeat(AT["timestamp_type"], (batch.timestamp_type.name.lower(),), count)
    batch_values = (
        batch.magic,
        batch.compression.name.lower(),
        batch.producer_id,
        batch.producer_epoch,
    )
    sink.repeat(AT["magic"], batch_values, count)
    end = (batch.transactional, batch.control, batch.partition_leader_epoch, batch.base_offset)
    sink.repeat(AT["transactional"], end, count)
