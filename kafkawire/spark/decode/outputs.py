"""The output rows of decoding tasks: tables, chunks, group items, state and facts in one schema.

Rows of tables travel as serialised record batches; few large values cross between Spark and
Python.

    | kind: rows  | name: table                   | n: rows            | body: batch, or spill file
    | kind: chunk | name: its spill file, or none | n: index in bucket | body: see `chunks`
    | kind: item  | name: group id                | at, n: sort keys   | body: pickled
    | kind: state | name: its table               |                    | body: record batches
    | kind: facts |                               |                    | body: pickled
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc

from ...capture.tables import TABLES
from ...capture.tables.arrow.schemas import batches
from ..options import Options
from ..plan.facts import Facts
from .columns import Shaper
from .scratch import Scratch

OUT: Final = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("name", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("body", pa.binary()),
    ]
)

ITEM: Final = "item"
"""Kind of the rows of group items."""

NOTHING: Final = pa.RecordBatch.from_pylist([], OUT)

BUFFERED: Final = 256
"""Rows of a table in a batch."""

FILE_BYTES: Final = 16 << 20
"""Bytes of rows in a spill file: its reader has all of it in memory."""

ARROW: Final = ".arrow"
"""Suffix of spill files of rows."""

LZ4_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""Batches are spilled with LZ4: a quarter of the size costs less than allocating and clearing pages
for all.
"""

READ_OPTIONS: Final = pa.ipc.IpcReadOptions(use_threads=False)
"""Files are read without threads: a task has one core."""

Values = tuple[Any, ...]


class Output:
    """Collects rows of tables; `drain` yields complete batches."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._shapers: dict[str, Shaper] = {}
        self._rows: dict[str, list[Values]] = {}
        self._ready: list[pa.RecordBatch] = []

    def rows(self, table: str, rows: Iterable[Values]) -> None:
        """Add rows of a table."""
        buffered = self._rows.setdefault(table, [])
        for row in rows:
            buffered.append(row)
            if len(buffered) >= BUFFERED:
                self._flush(table)
                buffered = self._rows[table]

    def batch(self, table: str, batch: pa.RecordBatch) -> None:
        """Add a batch of a table that is made column by column."""
        shaped = self._shaper(table).shaped(batch)
        if len(shaped):
            self.other("rows", table, 0, len(shaped), serialise(shaped))

    def other(self, kind: str, name: str, at: int, n: int, body: bytes) -> None:
        """Add an output row of another kind."""
        self._ready.append(out_row(kind, name, at, n, body))

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield the complete batches."""
        ready, self._ready = self._ready, []
        yield from ready

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield everything."""
        for table in list(self._rows):
            self._flush(table)
        yield from self.drain()

    def _flush(self, table: str) -> None:
        rows, self._rows[table] = self._rows[table], []
        for batch in batches(TABLES[table].columns, rows, BUFFERED, _no_names):
            self.batch(table, batch)

    def _shaper(self, table: str) -> Shaper:
        shaper = self._shapers.get(table)
        if shaper is None:
            names = TABLES[table].schema.names
            shaper = self._shapers[table] = Shaper(table, names, self._options)
        return shaper


def _no_names() -> None:
    """Leave topics unresolved: their names are known when all connections were decoded."""


def out_row(kind: str, name: str, at: int, n: int, body: bytes) -> pa.RecordBatch:
    """Make a batch of one row."""
    values = (kind, name, at, n, body)
    arrays = [pa.array([value], f.type) for value, f in zip(values, OUT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUT)


def serialise(batch: pa.RecordBatch) -> bytes:
    """Serialise a batch."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema, options=LZ4_OPTIONS) as stream:
        stream.write_batch(batch)
    return bytes(out.getvalue())


class SpillFile:
    """A file of rows of a table that all workers see. rows, bytes: how many were written."""

    def __init__(self, scratch: Scratch, table: str, schema: pa.Schema) -> None:
        self.rows = self.bytes = 0
        self._table = table
        with ExitStack() as stack:
            self._name, out = stack.enter_context(scratch.create(ARROW))
            self._file = stack.enter_context(pa.ipc.new_file(out, schema, options=LZ4_OPTIONS))
            self._stack = stack.pop_all()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._file.write_batch(batch)
        self.rows += len(batch)
        self.bytes += batch.nbytes

    def close(self) -> None:
        """Complete the file."""
        self._stack.close()

    def row(self) -> pa.RecordBatch:
        """Complete the file; returns its output row."""
        self.close()
        return out_row("rows", self._table, 0, self.rows, os.fsencode(self._name))


Write = Callable[[str, pa.RecordBatch], bool]
"""Writes the rows of a table where they stay; False if they must be spilled."""

WriteKnown = Callable[[str, pa.RecordBatch, Facts], bool]
"""The same; also gets the facts that the task has collected."""


def spill_batches(
    scratch: Scratch, batches: Iterable[tuple[str, pa.RecordBatch]], write: Write | None = None
) -> Iterator[pa.RecordBatch]:
    """Write batches of tables to files that all workers see, and yield a row for each file.

    Batches of ITEM are output rows already. After another batch an empty batch is yielded, so that
    the task goes on.
    """
    files: dict[str, SpillFile] = {}
    try:
        for table, batch in batches:
            if table == ITEM:
                yield batch
                continue
            if write is not None and write(table, batch):
                yield NOTHING
                continue
            if table not in files:
                files[table] = SpillFile(scratch, table, batch.schema)
            files[table].write(batch)
            if files[table].bytes >= FILE_BYTES:
                yield files.pop(table).row()
            else:
                yield NOTHING
        for file in files.values():
            yield file.row()
    finally:
        for file in files.values():
            file.close()


def batch_rows(batches: Iterable[tuple[str, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Turn batches of tables into output rows; those of ITEM are such rows already."""
    for table, batch in batches:
        if table == ITEM:
            yield batch
        else:
            yield out_row("rows", table, 0, len(batch), serialise(batch))


def spill(scratch: Scratch | None, body: bytes) -> tuple[str, bytes]:
    """Write a large value to a file that all workers see, if there is a directory for them.

    Returns name and body of an output row from which `read_spilled` gets it back.
    """
    if scratch is None:
        return "", body
    with scratch.create() as (name, out):
        out.write(body)
    return name, b""


def read_spilled(scratch: Scratch | None, name: str, body: bytes) -> bytes:
    """Read a value that may have been spilled."""
    return body if scratch is None else scratch.read(name)


def deserialise(body: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Read serialised batches."""
    with pa.ipc.open_stream(body) as stream:
        yield from stream


def table_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the record batches in output rows of tables."""
    for batch in batches:
        for body in batch.column("body"):
            yield from deserialise(body.as_buffer())


def read_file_batches(scratch: Scratch, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a spill file."""
    with scratch.opened(name) as file, pa.ipc.open_file(file, options=READ_OPTIONS) as reader:
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
