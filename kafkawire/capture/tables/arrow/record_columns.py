"""Builds the `records` table column by column, without an object per record.

The records of many fields are decoded into one set of columns.

Rows equal those that a test makes of decoded records of every capture.

    Fields --runs--> offsets, timestamps, views of keys and values
       `--`--> values of a field or a batch, repeated for its records
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

import pyarrow as pa

from ....records.arrow import replaced_texts
from ....records.columns import Columns
from ...exchanges.topic_ids import Topic
from ..columns import BYTES, TEXT
from ..records import COLUMNS, HEADERS, hidden_value, is_metadata
from .arrays import (
    booleans,
    empty_lists,
    from_column,
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
from .schemas import PLAIN, arrow_type, schema_of
from .values import copies, sequences, texts

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
    hidden = [not secrets and is_metadata(field) for field in fields.fields]
    for each in runs(fields, hidden):
        yield _batch(fields, each)


def _batch(fields: Fields, batch_runs: Runs) -> pa.RecordBatch:
    """Build a batch of records."""
    columns = batch_runs.columns
    rows = columns.rows
    counts = batch_runs.count.getvalue()
    arrays = _of_batches(batch_runs, counts)
    here = rows_of_fields(batch_runs.field.getvalue(), counts, len(fields))
    arrays |= _of_fields(fields, here, rows)
    offset, timestamp = columns.offset.numbers, columns.timestamp.numbers
    arrays["offset"] = numbers(TYPES["offset"], offset, rows)
    arrays["timestamp"] = times_of_ms(memoryview(timestamp)[: 8 * rows])
    arrays["timestamp_ms"] = numbers(TYPES["timestamp_ms"], timestamp, rows)
    arrays["key"] = from_views(PLAIN[BYTES], columns.key, rows, columns.buffers)
    arrays["value"] = from_views(PLAIN[BYTES], columns.value, rows, columns.buffers)
    arrays["headers"] = header_lists(columns)
    if batch_runs.hidden:
        arrays |= _hidden(arrays)
    sequence = sequences(
        batch_runs.base_sequence.getvalue(), batch_runs.base_offset.getvalue(), counts, offset
    )
    arrays["sequence"] = numbers(TYPES["sequence"], sequence)
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def _of_batches(batch_runs: Runs, counts: bytes) -> dict[str, pa.Array]:
    """Build the columns of batch values."""
    columns = {}
    for name in BATCH_NUMBERS:
        values = getattr(batch_runs, name).getvalue()
        columns[name] = repeated_numbers(TYPES[name], values, None, counts)
    for name in BATCH_FLAGS:
        columns[name] = booleans(copies(getattr(batch_runs, name).getvalue(), 1, counts))
    for name in BATCH_TEXTS:
        columns[name] = repeated_texts(getattr(batch_runs, name), counts)
    return columns


def _of_fields(fields: Fields, counts: bytes, rows: int) -> dict[str, pa.Array]:
    """Build the columns of where records were found. counts: the records of each field."""
    columns = {}
    for name in NUMBERS:
        column: Numbers = getattr(fields, name)
        values, valid = column.values.getvalue(), column.valid.getvalue()
        columns[name] = repeated_numbers(TYPES[name], values, valid, counts)
        if name == "time_ns":
            columns["time"] = repeated_times(values, valid, counts)
    for name in TEXTS:
        columns[name] = repeated_texts(getattr(fields, name), counts)
    topics = dict.fromkeys(fields.topic)
    columns["topic"] = _of_topics(fields, {topic: topic.name for topic in topics}, counts)
    ids = {topic: topic.id_text for topic in topics if topic.id is not None}
    columns["topic_id"] = _of_topics(fields, ids, counts) if ids else pa.nulls(rows, PLAIN[TEXT])
    return columns


def _of_topics(fields: Fields, texts: Mapping[Topic, str | None], counts: bytes) -> pa.Array:
    """Build a column of texts of topics; null for others."""
    return repeated_texts(list(map(texts.get, fields.topic)), counts)


def _hidden(arrays: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Replace keys, values and header values by their sizes."""
    headers = arrays["headers"]
    names, values, key_bytes = map(headers.values.field, ("key", "value", "key_bytes"))
    pairs = pa.StructArray.from_arrays(
        [names, _sizes(values), key_bytes], fields=list(HEADERS_TYPE.value_type)
    )
    return {
        "key": _sizes(arrays["key"]),
        "value": _sizes(arrays["value"]),
        "headers": pa.ListArray.from_arrays(headers.offsets, pairs, type=HEADERS_TYPE),
    }


def _sizes(values: pa.Array) -> pa.Array:
    """Return what is shown instead of some bytes."""
    shown = [hidden_value(value) for value in values.to_pylist()]
    return from_column(PLAIN[BYTES], texts(shown))


def header_lists(columns: Columns) -> pa.Array:
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
