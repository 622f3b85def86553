"""Builds the `records` table column by column, without an object per record.

The records of many fields are decoded into one set of columns.

Law: rows equal those that `records.rows` builds of decoded records; fields decoded together with a
corrupt batch are decoded again one by one.

    Fields --runs--> offsets, timestamps, views of keys and values
       `--`--> values of a field or a batch, repeated for its records
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import pyarrow as pa

from ....errors import WireError
from ....records.arrow import replaced_texts
from ....records.columns import Columns
from ...exchanges.topic_ids import Topic
from ..columns import BYTES, TEXT, Sink, known, micros
from ..extraction.record_batches import CorruptRecords, batches_in
from ..records import COLUMNS, HEADERS, add, hidden_content, is_metadata, is_metadata_topic
from .arrays import (
    booleans,
    empty_lists,
    from_views,
    lists,
    numbers,
    repeated_numbers,
    repeated_texts,
    repeated_times,
    times_of_ms,
)
from .buffers import Numbers
from .record_fields import Fields, Runs, rows_of_fields, runs
from .schemas import PLAIN, arrow_type, resolved, schema_of
from .values import copies, sequences

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}
HEADERS_TYPE: Final = arrow_type(HEADERS)
FIELD_BYTES: Final = 1 << 21
"""Bytes of fields that are decoded together."""

Form = Literal["i", "q"]
"""An int32 or an int64."""

NUMBERS: Final[dict[str, Form]] = {
    "packet": "q",
    "time_ns": "q",
    "connection": "q",
    "correlation_id": "i",
    "partition": "i",
}
"""Columns of `Fields`, and their numbers."""

TEXTS: Final = ("file", "client", "broker", "direction", "client_id")

BATCH_NUMBERS: Final = (
    "magic",
    "producer_id",
    "producer_epoch",
    "partition_leader_epoch",
    "base_offset",
)
BATCH_FLAGS: Final = ("transactional", "control")
BATCH_TEXTS: Final = ("timestamp_type", "codec")
"""Columns of `Runs`."""


class RecordColumns:
    """Collects records fields, and builds record batches of the records in them.

    secrets: whether records of the metadata topic are shown.
    """

    def __init__(self, before: Callable[[], None], secrets: bool = False) -> None:
        self._before = before
        self._secrets = secrets
        self.fields = Fields()

    def is_full(self, rows: int) -> bool:
        """Whether there is enough for a batch of that many rows."""
        return self.fields.bytes >= FIELD_BYTES or len(self.fields) >= rows

    def take(self) -> Fields:
        """Return all collected fields, and start new ones."""
        fields, self.fields = self.fields, Fields()
        if len(fields):
            self._before()
        return fields

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Build batches of all collected fields, of any number of rows."""
        return record_batches(self.take(), self._secrets)


def record_batches(fields: Fields, secrets: bool) -> Iterator[pa.RecordBatch]:
    """Build batches of the records in some fields, of any number of rows."""
    if not len(fields):
        return
    if not secrets and any(map(is_metadata_topic, dict.fromkeys(fields.topic))):
        yield from _one_by_one(fields, secrets)
        return
    try:
        made = [_batch(fields, each) for each in runs(fields.fields)]
    except WireError:
        made = list(_one_by_one(fields, secrets))
    yield from made


def _one_by_one(fields: Fields, secrets: bool) -> Iterator[pa.RecordBatch]:
    """Decode each batch by itself; a corrupt one affects no other."""
    sink = Sink(COLUMNS)
    columns = [_values(getattr(fields, name), form) for name, form in NUMBERS.items()]
    for at, field in enumerate(fields.fields):
        packet, time_ns, connection, correlation_id, partition = (
            values[at] if valid[at] else None for values, valid in columns
        )
        where = (
            fields.file[at],
            packet,
            micros(time_ns),
            known(time_ns),
            connection,
            fields.client[at],
            fields.broker[at],
            fields.direction[at],
            fields.client_id[at],
            correlation_id,
            field.topic,
            field.topic.id_text,
            partition,
        )
        hidden = not secrets and is_metadata(field)
        for found in batches_in(field):
            if not isinstance(found, CorruptRecords):
                batch, records = found
                add(sink, where, batch, hidden_content(records) if hidden else records)
    if len(sink):
        arrays = [resolved(column, v) for column, v in zip(COLUMNS, sink.values, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _batch(fields: Fields, found: Runs) -> pa.RecordBatch:
    """Build a batch of records."""
    columns = found.columns
    rows = columns.rows
    counts = found.count.getvalue()
    made = _of_batches(found, counts)
    here = rows_of_fields(found.field.getvalue(), counts, len(fields))
    made |= _of_fields(fields, here, rows)
    offset, timestamp = columns.offset.numbers, columns.timestamp.numbers
    made["offset"] = numbers(TYPES["offset"], offset, rows)
    made["timestamp"] = times_of_ms(memoryview(timestamp)[: 8 * rows])
    made["timestamp_ms"] = numbers(TYPES["timestamp_ms"], timestamp, rows)
    made["key"] = from_views(PLAIN[BYTES], columns.key, rows, columns.buffers)
    made["value"] = from_views(PLAIN[BYTES], columns.value, rows, columns.buffers)
    made["headers"] = _headers(columns)
    sequence = sequences(
        found.base_sequence.getvalue(), found.base_offset.getvalue(), counts, offset
    )
    made["sequence"] = numbers(TYPES["sequence"], sequence)
    return pa.RecordBatch.from_arrays([made[name] for name in SCHEMA.names], schema=SCHEMA)


def _of_batches(found: Runs, counts: bytes) -> dict[str, pa.Array]:
    """Build the columns of batch values."""
    made = {}
    for name in BATCH_NUMBERS:
        values = getattr(found, name).getvalue()
        made[name] = repeated_numbers(TYPES[name], values, None, counts)
    for name in BATCH_FLAGS:
        made[name] = booleans(copies(getattr(found, name).getvalue(), 1, counts))
    for name in BATCH_TEXTS:
        made[name] = repeated_texts(getattr(found, name), counts)
    return made


def _of_fields(fields: Fields, counts: bytes, rows: int) -> dict[str, pa.Array]:
    """Build the columns of where records were found. counts: the records of each field."""
    made = {}
    for name in NUMBERS:
        column: Numbers = getattr(fields, name)
        values, valid = column.values.getvalue(), column.valid.getvalue()
        made[name] = repeated_numbers(TYPES[name], values, valid, counts)
        if name == "time_ns":
            made["time"] = repeated_times(values, valid, counts)
    for name in TEXTS:
        made[name] = repeated_texts(getattr(fields, name), counts)
    topics = dict.fromkeys(fields.topic)
    made["topic"] = _of_topics(fields, {topic: topic.name for topic in topics}, counts)
    ids = {topic: topic.id_text for topic in topics if topic.id is not None}
    made["topic_id"] = _of_topics(fields, ids, counts) if ids else pa.nulls(rows, PLAIN[TEXT])
    return made


def _of_topics(fields: Fields, texts: Mapping[Topic, str | None], counts: bytes) -> pa.Array:
    """Build a column of texts of topics; null for others."""
    return repeated_texts(list(map(texts.get, fields.topic)), counts)


def _values(column: Numbers, form: Form) -> tuple[Any, bytes]:
    return memoryview(column.values.getvalue()).cast(form), column.valid.getvalue()


def _headers(columns: Columns) -> pa.Array:
    """Build the lists of headers."""
    count = columns.headers
    header = HEADERS_TYPE.value_type
    if not count:
        return empty_lists(HEADERS_TYPE, columns.rows, pa.nulls(0, header))
    invalid = columns.invalid_header_keys
    if invalid:
        raw = from_views(PLAIN[BYTES], columns.header_key, count, columns.buffers)
        keys, key_bytes = replaced_texts(raw, invalid, PLAIN[TEXT])
    else:
        keys = from_views(PLAIN[TEXT], columns.header_key, count, columns.buffers)
        key_bytes = pa.nulls(count, PLAIN[BYTES])
    values = from_views(PLAIN[BYTES], columns.header_value, count, columns.buffers)
    children = [keys, values, key_bytes]
    headers = pa.Array.from_buffers(header, count, [None], children=children)
    return lists(HEADERS_TYPE, columns.header_ends.numbers, headers, columns.rows)
