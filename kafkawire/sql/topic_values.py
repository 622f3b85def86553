"""Decodes the records of a topic into a table, whose column `value` has the type of the values.

The table has every record of the topic but control records; a value that cannot be decoded is
null, with the reason beside it. It is in files, and so are decoded values until their type is
known: memory does not grow with the topic.

    `records` --portions--> decoded --file--> with their common type --file--> batches
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..capture.tables import TABLES
from ..values import DecodedValue, Subject, ValueDecoder
from ..values.record_values import Undecoded
from .value_types import UNTYPABLE, ValueTypes

KEPT: Final = (
    "file",
    "packet",
    "time",
    "connection",
    "direction",
    "client_id",
    "partition",
    "offset",
    "timestamp",
    "key",
    "headers",
)
"""Columns of `records` that the table has, too."""
NEEDED: Final = frozenset({*KEPT, "topic", "value", "control"})

PORTION_ROWS: Final = 1024
PORTION_BYTES: Final = 1 << 20
"""Records whose values are decoded together: so many, of so many bytes, but at least one."""


class TopicTable:
    """The records of a topic with decoded values, as files in a folder, which is its own.

    batches: of the table `records`. schema: that of the table; rows: their number. undecoded:
    values that are not decoded.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], topic: str, decoder: ValueDecoder, folder: Path
    ) -> None:
        self.rows = 0
        self.undecoded = Undecoded("value")
        self._path = folder / "table"
        self._types = types = ValueTypes()
        with TemporaryFile(dir=folder) as file:
            for rows in _portions(batches, topic):
                decoded = _decoded(rows, Subject(topic), decoder)
                self._add(decoded)
                types.add(_values(decoded))
                kept = rows.select(KEPT)
                pickle.dump((kept.serialize().to_pybytes(), decoded), file)  # only the portion
            try:
                self.schema = self._write(file, types)
            except UNTYPABLE:  # an integer, say, that is not exact as float64
                types.be_text()
                self.schema = self._write(file, types)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Open the table (Arrow's PyCapsule interface)."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def reader(self) -> pa.RecordBatchReader:
        """Read the table."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    @property
    def notes(self) -> list[str]:
        """What is unexpected about the table: no records, values without a type."""
        if not self.rows:
            return ["no records of this topic"]
        notes = self.undecoded.notes
        if self._types.is_text:
            notes.append("values have no type in common, and are JSON text: value->>'field'")
        return notes

    def _add(self, decoded: list[DecodedValue | None]) -> None:
        """Count values, and those that are not decoded."""
        self.rows += len(decoded)
        for one in decoded:
            self.undecoded.add(one)

    def _write(self, file: IO[bytes], types: ValueTypes) -> pa.Schema:
        """Write the table; returns its columns. Raises what is in UNTYPABLE."""
        records = TABLES["records"].schema
        kept = pa.schema([records.field(name) for name in KEPT])
        added = [("value", types.type), ("error", pa.string()), ("schema_id", pa.int64())]
        schema = pa.schema([*kept, *added])
        file.seek(0)
        with pa.ipc.new_stream(str(self._path), schema) as writer, suppress(EOFError):
            while True:
                data, decoded = pickle.load(file)
                rows = pa.ipc.read_record_batch(pa.py_buffer(data), kept)
                writer.write_batch(_with_values(rows, decoded, types, schema))
        return schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_stream(str(self._path)) as reader:
            yield from reader


def _portions(batches: Iterable[pa.RecordBatch], topic: str) -> Iterator[pa.RecordBatch]:
    """Return the records of a topic in portions."""
    for batch in batches:
        wanted = pc.and_not(pc.equal(batch["topic"], topic), batch["control"])
        rows = batch.select([*KEPT, "value"]).filter(wanted)
        sizes = pc.fill_null(pc.binary_length(rows["value"]), 0).to_pylist()
        start = held = 0
        for at, size in enumerate(sizes):
            if at > start and (at - start == PORTION_ROWS or held + size > PORTION_BYTES):
                yield rows.slice(start, at - start)
                start, held = at, 0
            held += size
        if start < len(rows):
            yield rows.slice(start)


def _decoded(
    rows: pa.RecordBatch, subject: Subject, decoder: ValueDecoder
) -> list[DecodedValue | None]:
    """Decode the values of records."""
    values, of_rows = rows["value"].to_pylist(), rows["headers"].to_pylist()
    return [
        decoder.decode(value, subject, [(one["key"], one["value"]) for one in headers])
        for value, headers in zip(values, of_rows, strict=True)
    ]


def _values(decoded: list[DecodedValue | None]) -> list[object]:
    return [None if one is None else one.value for one in decoded]


def _with_values(
    rows: pa.RecordBatch, decoded: list[DecodedValue | None], types: ValueTypes, schema: pa.Schema
) -> pa.RecordBatch:
    """Add the columns value, error and schema_id."""
    errors = [None if one is None else one.error for one in decoded]
    ids = [None if one is None else one.schema_id for one in decoded]
    added = [
        types.array(_values(decoded)),
        pa.array(errors, pa.string()),
        pa.array(ids, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays([*rows.columns, *added], schema=schema)
