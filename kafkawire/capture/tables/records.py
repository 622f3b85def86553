"""Builds the `records` table: one row per record that was produced or fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...protocol.secrets import METADATA_TOPICS, placeholder
from ...records import Batch, Record
from ...records.replaced_text import header_row
from ..exchanges.topic_ids import Topic
from .columns import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    Sink,
    list_of,
    micros_of_ms,
    struct_of,
    topic_name,
)
from .context import WHERE, Context
from .extraction.record_batches import (
    RECORDS_MESSAGES,
    CorruptRecords,
    RecordsField,
    batches_in,
    records_fields,
)

HEADERS: Final = list_of(struct_of(key=TEXT, value=BYTES, key_bytes=BYTES))

COLUMNS: Final[Columns] = (
    *WHERE,
    Column("direction", TEXT, "`produce`, `fetch` or `share_fetch`."),
    Column("client_id", TEXT, "Client id of the request."),
    Column("correlation_id", INT32, "Correlation id of the exchange."),
    Column("topic", TEXT, "Topic; null if its name is not in the capture.", topic_name),
    Column("topic_id", TEXT, "Topic id in Kafka's text form, if the message uses topic ids."),
    Column("partition", INT32, "Partition."),
    Column("offset", INT64, "Offset; in a Produce request, the position in the batch, from 0."),
    Column("timestamp", TIME, "Timestamp of the record; null for none, or after the year 9999."),
    Column("timestamp_ms", INT64, "The same in milliseconds since the epoch, -1 for none."),
    Column("timestamp_type", TEXT, "`create_time`, `log_append_time` or `no_timestamp_type`."),
    Column("key", BYTES, "Key; redacted in the metadata topic, whose records hold secrets."),
    Column("value", BYTES, "Value; null for a tombstone; redacted where keys are."),
    Column(
        "headers",
        HEADERS,
        "Headers in order; `key_bytes`: of a key that is not UTF-8, shown with U+FFFD, else null.",
    ),
    Column("magic", INT8, "Format version (magic) of the batch: 0, 1 or 2."),
    Column("codec", TEXT, "Compression of the batch: `none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    Column("producer_id", INT64, "Producer id, -1 for none."),
    Column("producer_epoch", INT16, "Producer epoch, -1 for none."),
    Column("sequence", INT32, "Sequence number of the record, -1 for none."),
    Column("transactional", BOOL, "Whether the batch is part of a transaction."),
    Column("control", BOOL, "Whether it is a control record, such as a transaction marker."),
    Column("partition_leader_epoch", INT32, "Partition leader epoch of the batch, -1 for none."),
    Column("base_offset", INT64, "Base offset of the batch."),
)
"""A fetch returns whole batches, so records before the requested offset are included."""

DIRECTION: Final = {0: "produce", 1: "fetch", 78: "share_fetch"}


HEADERLESS: Final[list[dict[str, Any]]] = []
AT: Final = {column.name: at for at, column in enumerate(COLUMNS)}


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Build the rows of the table."""
    sink = Sink(COLUMNS)
    for _ in fill(context, sink):
        yield from zip(*sink.values, strict=True)
        sink.drop(len(sink))


def fill(context: Context, sink: Sink) -> Iterator[None]:
    """Build the rows of the table, column by column, and yield after each message."""
    for item in context.records_messages(RECORDS_MESSAGES):
        row = item.row
        if row.message is None:
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


def is_metadata(field: RecordsField) -> bool:
    """Whether records belong to the metadata topic, which holds secrets."""
    return is_metadata_topic(field.topic)


def is_metadata_topic(topic: Topic) -> bool:
    """Whether a topic is the metadata topic."""
    return topic.name in METADATA_TOPICS or topic.id_text in METADATA_TOPICS


def hidden_content(records: list[Record]) -> list[Record]:
    """Replace keys, values and header values by their sizes."""
    return [
        Record(
            record.offset,
            record.timestamp,
            _size(record.key),
            _size(record.value),
            tuple([(key, _size(value)) for key, value in record.headers]),
        )
        for record in records
    ]


def _size(data: bytes | None) -> bytes | None:
    shown = hidden_value(data)
    return None if shown is None else shown.encode()


def hidden_value(data: bytes | None) -> str | None:
    """Return what is shown instead of some bytes: their number."""
    return None if data is None else placeholder(len(data), "byte")


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
