"""Builds the `records` table column by column, without an object per record.

The records of many fields are decoded into one set of columns.

Law: rows equal those that `records.rows` builds of decoded records; fields decoded together with a
corrupt batch are decoded again one by one.

    Fields --runs--> offsets, timestamps, views of keys and values
       `--`--> values of a field or a batch, repeated for its records
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....errors import WireError
from ....records.columns import Columns
from ..columns import BYTES, TEXT, Sink, known, micros
from ..extraction.record_batches import CorruptRecords, batches_in
from ..records import COLUMNS, HEADERS, add, hidden_content, is_metadata, is_metadata_topic
from .arrays import (
    Int64s,
    bitmap,
    booleans,
    empty_lists,
    from_views,
    lists,
    numbers,
    repeated_texts,
    times,
    times_of_ms,
)
from .buffers import Numbers
from .record_fields import Fields, Runs, runs
from .schemas import PLAIN, arrow_type, resolved, schema_of

SCHEMA: Final = schema_of(COLUMNS)
TYPES: Final = {field.name: field.type for field in SCHEMA}
HEADERS_TYPE: Final = arrow_type(HEADERS)
FIELD_BYTES: Final = 1 << 21
"""Bytes of fields that are decoded together."""

NUMBERS: Final = {
    "packet": np.int64,
    "time_ns": np.int64,
    "connection": np.int64,
    "correlation_id": np.int32,
    "partition": np.int32,
}
"""Columns of `Fields`."""

TEXTS: Final = ("file", "client", "broker", "direction", "client_id")

BATCH_FIELDS: Final = {
    "magic": np.int8,
    "producer_id": np.int64,
    "producer_epoch": np.int16,
    "partition_leader_epoch": np.int32,
    "base_offset": np.int64,
}
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
    columns = {name: _as_numpy(getattr(fields, name), dtype) for name, dtype in NUMBERS.items()}
    for at, field in enumerate(fields.fields):
        packet, time_ns, connection, correlation_id, partition = (
            int(values[at]) if valid[at] else None for values, valid in columns.values()
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
    counts = np.frombuffer(found.count.getvalue(), np.int64)
    made = _of_batches(found, counts)
    of_field = np.frombuffer(found.field.getvalue(), np.int64)
    here = np.bincount(of_field, counts, len(fields)).astype(np.int64)
    made |= _of_fields(fields, here)
    offset = np.frombuffer(columns.offset.numbers, np.int64, rows)
    timestamp = np.frombuffer(columns.timestamp.numbers, np.int64, rows)
    made["offset"] = numbers(TYPES["offset"], offset)
    made["timestamp"] = times_of_ms(timestamp)
    made["timestamp_ms"] = numbers(TYPES["timestamp_ms"], timestamp)
    made["key"] = from_views(PLAIN[BYTES], columns.key, rows, columns.buffers)
    made["value"] = from_views(PLAIN[BYTES], columns.value, rows, columns.buffers)
    made["headers"] = _headers(columns)
    first = np.repeat(np.frombuffer(found.base_sequence.getvalue(), np.int64), counts)
    delta = offset - np.frombuffer(made["base_offset"].buffers()[1], np.int64, rows)
    sequence = np.where(first < 0, -1, (first + delta) & 0x7FFFFFFF).astype(np.int32)
    made["sequence"] = numbers(TYPES["sequence"], sequence)
    return pa.RecordBatch.from_arrays([made[name] for name in SCHEMA.names], schema=SCHEMA)


def _of_batches(found: Runs, counts: Int64s) -> dict[str, pa.Array]:
    """Build the columns of batch values."""
    made = {}
    for name, dtype in BATCH_FIELDS.items():
        values = np.frombuffer(getattr(found, name).getvalue(), dtype)
        made[name] = numbers(TYPES[name], np.repeat(values, counts))
    for name in ("transactional", "control"):
        values = np.frombuffer(getattr(found, name).getvalue(), np.bool_)
        made[name] = booleans(np.repeat(values, counts))
    for name in ("timestamp_type", "codec"):
        made[name] = repeated_texts(getattr(found, name), counts)
    return made


def _of_fields(fields: Fields, counts: Int64s) -> dict[str, pa.Array]:
    """Build the columns of where records were found."""
    made = {}
    for name, dtype in NUMBERS.items():
        values, valid = _as_numpy(getattr(fields, name), dtype)
        bits = bitmap(np.repeat(valid, counts))
        repeated = np.repeat(values, counts)
        buffers = [bits, pa.py_buffer(repeated)]
        made[name] = pa.Array.from_buffers(TYPES[name], len(repeated), buffers)
        if name == "time_ns":
            made["time"] = times(np.repeat(np.where(valid, values, -1), counts))
    for name in TEXTS:
        made[name] = repeated_texts(getattr(fields, name), counts)
    topics = {topic: (topic.name, topic.id_text) for topic in dict.fromkeys(fields.topic)}
    names = [topics[topic] for topic in fields.topic]
    made["topic"] = repeated_texts([name for name, _ in names], counts)
    made["topic_id"] = repeated_texts([id for _, id in names], counts)
    return made


def _as_numpy(column: Numbers, dtype: npt.DTypeLike) -> tuple[Any, Any]:
    valid = np.frombuffer(column.valid.getvalue(), np.bool_)
    return np.frombuffer(column.values.getvalue(), dtype), valid


def _headers(columns: Columns) -> pa.Array:
    """Build the lists of headers."""
    count = columns.headers
    header = HEADERS_TYPE.value_type
    if not count:
        return empty_lists(HEADERS_TYPE, columns.rows, pa.nulls(0, header))
    children = [
        from_views(PLAIN[TEXT], columns.header_key, count, columns.buffers),
        from_views(PLAIN[BYTES], columns.header_value, count, columns.buffers),
    ]
    headers = pa.Array.from_buffers(header, count, [None], children=children)
    ends = np.frombuffer(columns.header_ends.numbers, np.int32, columns.rows + 1)
    return lists(HEADERS_TYPE, ends, headers)
