"""The `records` table column by column: records of many fields decoded into one set of columns,
without an object for each.

Law: row for row what `records.rows` makes of decoded records; fields that hold a broken batch are
left to it.

    [Field] --joined--> RecordBatches --add_to--> offsets, timestamps, views of keys and values
              `-- a row for each batch ----------> repeated for its records
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import WireError
from ...records import Batch, Budget, RecordBatches
from ...records.columns import Columns
from .arrays import Int64s, flags, nothing, numbers, repeated_texts, times, times_of_ms, whole
from .columns import BOOL, TEXT, Sink, array_of, schema_of
from .record_batches import Broken, Carried, batches_in
from .records import COLUMNS, HEADERS, add

SCHEMA: Final = schema_of(COLUMNS)
NAMES: Final = tuple(SCHEMA.names)
TYPES: Final = {field.name: field.type for field in SCHEMA}

OF_FIELD: Final = tuple(name for name in NAMES[: NAMES.index("offset")] if name != "time")
"""What is the same for all records of a field."""

OF_BATCH: Final = (
    "timestamp_type",
    "magic",
    "codec",
    "producer_id",
    "producer_epoch",
    "transactional",
    "control",
    "partition_leader_epoch",
    "base_offset",
)
"""What is the same for all records of a batch."""

FIELD_BYTES: Final = 1 << 18
"""Bytes of fields that are decoded together."""

OPENED_BYTES: Final = 1 << 25
"""Bytes of decompressed batches after which rows are given."""


class Field(NamedTuple):
    """A records field and the first columns of its rows, with `time`."""

    where: tuple[Any, ...]
    carried: Carried


class RecordColumns:
    """Collects records fields, and makes batches of the records in them."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._fields: list[Field] = []
        self._bytes = 0

    def add(self, field: Field) -> None:
        """Take a field."""
        self._fields.append(field)
        self._bytes += len(field.carried.data)

    def is_full(self, rows: int) -> bool:
        """Whether there is enough for a batch of so many rows."""
        return self._bytes >= FIELD_BYTES or len(self._fields) >= rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Make batches of all that was taken, of any number of rows."""
        fields, self._fields, self._bytes = self._fields, [], 0
        if not fields:
            return
        self._before()
        try:
            made = list(_joined(fields))
        except WireError:
            made = list(_one_by_one(fields))
        yield from made


def _one_by_one(fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Read each batch for itself; what is broken costs itself."""
    sink = Sink(COLUMNS)
    for field in fields:
        for found in batches_in(field.carried):
            if not isinstance(found, Broken):
                add(sink, field.where, *found)
    if len(sink):
        arrays = [array_of(column, v) for column, v in zip(COLUMNS, sink.values, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _joined(fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Read all batches as if they were of one field; WireError where one cannot be read."""
    data, ends = _whole(fields)
    columns = Columns(data)
    rows: list[tuple[Any, ...]] = []
    counts: list[int] = []
    at = -1
    end = 0
    budget = Budget(RecordBatches(data).limits)
    opened = 0
    for batch in RecordBatches(data):
        while batch.start >= end:
            at += 1
            end = ends[at]
            budget = Budget(batch.limits)
        before = len(columns)
        batch.add_to(columns, budget)
        count = len(columns) - before
        if not count:
            continue
        rows.append((at, batch.base_sequence, *_of_batch(batch)))
        counts.append(count)
        if len(columns.buffers) > 1:
            opened += len(columns.buffers[-1])
            if opened > OPENED_BYTES:
                yield _batch(fields, columns, rows, counts)
                columns, rows, counts, opened = Columns(data), [], [], 0
    if counts:
        yield _batch(fields, columns, rows, counts)


def _whole(fields: Sequence[Field]) -> tuple[bytes, list[int]]:
    """Put the whole batches of fields behind one another; say where each field ends."""
    pieces: list[bytes] = []
    ends: list[int] = []
    end = 0
    for field in fields:
        data = field.carried.data
        left = RecordBatches(data).cut_tail
        pieces.append(data[: len(data) - left] if left else data)
        end += len(data) - left
        ends.append(end)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), ends


def _of_batch(batch: Batch) -> tuple[Any, ...]:
    """Make the OF_BATCH columns."""
    return (
        batch.timestamp_type.name.lower(),
        batch.magic,
        batch.compression.name.lower(),
        batch.producer_id,
        batch.producer_epoch,
        batch.transactional,
        batch.control,
        batch.partition_leader_epoch,
        batch.base_offset,
    )


def _batch(
    fields: Sequence[Field], columns: Columns, rows: list[tuple[Any, ...]], counts: list[int]
) -> pa.RecordBatch:
    """Make a batch of records; rows: field, base sequence and OF_BATCH of each of their batches."""
    arrow = columns.to_arrow()
    at, base_sequence, *values = zip(*rows, strict=True)
    in_batch = np.array(counts, np.int64)
    made = _repeated(OF_BATCH, values, in_batch)
    made |= _of_field(fields, np.array(at, np.int64), in_batch)
    offset = _longs(arrow.column("offset"))
    timestamp = _longs(arrow.column("timestamp"))
    made["offset"] = arrow.column("offset")
    made["timestamp"] = times_of_ms(timestamp)
    made["timestamp_ms"] = arrow.column("timestamp")
    made["key"] = arrow.column("key").cast(TYPES["key"])
    made["value"] = arrow.column("value").cast(TYPES["value"])
    made["headers"] = _headers(columns, arrow.column("headers"))
    sequences = np.repeat(np.array(base_sequence, np.int64), in_batch)
    past = offset - _longs(made["base_offset"])
    numbered = np.where(sequences < 0, -1, (sequences + past) & 0x7FFFFFFF)
    made["sequence"] = whole(TYPES["sequence"], numbered.astype(np.int32))
    return pa.RecordBatch.from_arrays([made[name] for name in NAMES], schema=SCHEMA)


def _longs(found: pa.Array) -> Int64s:
    """Look at the numbers of an array without nulls; its own way to numpy imports pandas."""
    return np.frombuffer(found.buffers()[1], np.int64, len(found))


def _of_field(fields: Sequence[Field], at: Any, in_batch: Any) -> dict[str, pa.Array]:
    """Make the columns that say where records come from; at: the field of each batch."""
    here = np.bincount(at, in_batch, len(fields)).astype(np.int64)
    values = dict(zip(NAMES, zip(*[field.where for field in fields], strict=True), strict=False))
    values["topic"] = tuple(None if one is None else one.name for one in values["topic"])
    made = _repeated(OF_FIELD, [values[name] for name in OF_FIELD], here)
    time_ns = np.array([-1 if one is None else one for one in values["time_ns"]], np.int64)
    made["time"] = times(np.repeat(time_ns, here))
    return made


def _repeated(
    names: Sequence[str], values: Sequence[Sequence[Any]], counts: Any
) -> dict[str, pa.Array]:
    """Make columns of values that so many records have in common."""
    made = {}
    for name, each in zip(names, values, strict=True):
        type = TYPES[name]
        if type == TEXT:
            made[name] = repeated_texts(each, counts)
        elif type == BOOL:
            made[name] = flags(np.repeat(np.array(each, np.bool_), counts))
        else:
            made[name] = numbers(type, each, counts)
    return made


def _headers(columns: Columns, arrow: pa.Array) -> pa.Array:
    """Make the lists of headers."""
    if not columns.headers:
        return nothing(HEADERS, len(arrow), pa.nulls(0, HEADERS.value_type))
    return arrow.cast(HEADERS)
