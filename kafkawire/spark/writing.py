"""The last step of the job: a table's rows into Parquet, few files to a directory, by time.

Law: rows that go to one file meet in one task, as record batches; a task tells which files it has
written, and only those stay.

    decoded batches --cut by date, api, part--> shuffle by cell --merge by time--> cell/file.parquet
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext

from ..capture.blocks import Ints
from .outputs import out_row, packed, unpacked
from .splitting.stores import Store, filesystem

BY_API: Final = frozenset({"exchanges", "messages", "partitions"})
"""Tables that are cut by API, too."""

TIMES: Final = ("time", "response_time", "first_time")
"""Columns that say the time of a row, the first one that is there and not null."""

DAY: Final = 86_400_000_000
MINUTE: Final = 60_000_000
NEVER: Final = -(1 << 63)
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the directory of rows without a date."""

BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 4 << 20
"""Rows of a cell, or bytes of them, that are sent at a time."""

GROUP_ROWS: Final = 1 << 14
GROUP_BYTES: Final = 8 << 20
"""Rows, or bytes, that are put into order at a time."""

WRITTEN: Final = pa.schema([pa.field("file", pa.string()), pa.field("rows", pa.int64())])


def times(batch: pa.RecordBatch) -> Ints:
    """Say the time of each row, in microseconds; NEVER where it has none."""
    there = [batch.column(name) for name in TIMES if name in batch.schema.names]
    known = pc.coalesce(*there).cast(pa.int64())
    found: Ints = pc.fill_null(known, NEVER).to_numpy(zero_copy_only=False)
    return found


class Held(NamedTuple):
    """Batches that are collected."""

    batches: list[pa.RecordBatch]
    rows: int = 0
    bytes: int = 0

    def and_also(self, batch: pa.RecordBatch) -> Held:
        """Put a batch to them."""
        return Held([*self.batches, batch], self.rows + len(batch), self.bytes + batch.nbytes)

    def joined(self) -> pa.RecordBatch:
        """Make one of them; there is at least one row."""
        return pa.Table.from_batches(self.batches).combine_chunks().to_batches()[0]


def cut_by_cell(
    table: str, parts: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Make rows for Spark of batches of a table, named by cell: the directory that they go to, and
    the file there, of so many at most.
    """
    held: dict[str, Held] = {}
    for batch in batches:
        for cell, mine in _cut(batch, table in BY_API, parts):
            now = held[cell] = held.get(cell, Held([])).and_also(mine)
            if now.rows >= BATCH_ROWS or now.bytes >= BATCH_BYTES:
                yield _cell_row(cell, held.pop(cell))
    for cell, rest in held.items():
        yield _cell_row(cell, rest)


def _cell_row(cell: str, held: Held) -> pa.RecordBatch:
    batch = held.joined()
    return out_row("rows", cell, int(times(batch).min()), len(batch), packed(batch))


def _cut(batch: pa.RecordBatch, by_api: bool, parts: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    when = times(batch)
    place = (when // DAY) * parts + (when // MINUTE) % parts
    names = ["unknown"]
    if by_api:
        apis = pc.fill_null(batch.column("api_name"), "unknown").dictionary_encode()
        names = apis.dictionary.to_pylist()
        place = place * len(names) + apis.indices.to_numpy()
    order = np.argsort(place, kind="stable")
    place = place[order]
    cuts = np.flatnonzero(np.diff(place)) + 1
    ordered = batch.take(pa.array(order))
    for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(place)], strict=True):
        at, api = divmod(int(place[start]), len(names))
        day, part = divmod(at, parts)
        cell = f"date={_date(day)}" + (f"/api={names[api]}" if by_api else "")
        yield f"{cell}/part-{part:05d}", ordered.slice(start, end - start)


def _date(day: int) -> str:
    return NO_DATE if day == NEVER // DAY else str(np.datetime64(day, "D"))


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a table is written. finish: makes batches what they are in the end."""

    store: Store
    path: str
    finish: Callable[[pa.RecordBatch], pa.RecordBatch]

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write what a task holds, sorted by cell and time; tell the files."""
        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        rows = (row for batch in batches for row in _rows(batch))
        for cell, mine in groupby(rows, key=lambda row: row[0]):
            file = f"{cell}-{attempt}.parquet"
            count = self._file(file, ((at, body) for _, at, body in mine))
            if count:
                yield pa.RecordBatch.from_pydict({"file": [file], "rows": [count]}, WRITTEN)
        pa.default_memory_pool().release_unused()

    def _file(self, name: str, rows: Iterator[tuple[int, pa.Buffer]]) -> int:
        store, path = filesystem(self.store), f"{self.path}/{name}"
        folder, _, last = path.rpartition("/")
        hidden = f"{folder}/.{last}"
        groups = in_time((at, self.finish(batch)) for at, body in rows for batch in unpacked(body))
        first = next(groups, None)
        if first is None:
            return 0
        store.create_dir(folder, recursive=True)
        count = 0
        with (
            store.open_output_stream(hidden) as out,
            pq.ParquetWriter(out, first.schema, compression="zstd") as writer,
        ):
            while first is not None:
                writer.write_batch(first)
                count += len(first)
                first = next(groups, None)
        store.move(hidden, path)
        return count

    def only(self, files: Iterable[str]) -> None:
        """Leave nothing but these files."""
        store, wanted = filesystem(self.store), {f"{self.path}/{file}" for file in files}
        chosen = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        for found in store.get_file_info(chosen):
            if found.type == fs.FileType.File and found.path not in wanted:
                with suppress(FileNotFoundError):
                    store.delete_file(found.path)

    def empty(self) -> None:
        """Leave nothing."""
        self.only(())


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.Buffer]]:
    names, at = batch.column("name").to_pylist(), batch.column("at").to_pylist()
    for name, first, body in zip(names, at, batch.column("body"), strict=True):
        yield name, first, body.as_buffer()


def in_time(batches: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Put batches, which come by their first times, into the order of time; rows wait for batches
    that begin before them.
    """
    held = Held([])
    for first, batch in batches:
        if held.rows >= GROUP_ROWS or held.bytes >= GROUP_BYTES:
            found, when = _sorted(held)
            ready = int(np.searchsorted(when, first))
            if ready:
                yield found.slice(0, ready)
            rest = found.slice(ready)
            held = Held([]).and_also(rest) if len(rest) else Held([])
        held = held.and_also(batch)
    if held.rows:
        yield _sorted(held)[0]


def _sorted(held: Held) -> tuple[pa.RecordBatch, Any]:
    found = held.joined()
    when = times(found)
    order = np.argsort(when, kind="stable")
    return found.take(pa.array(order)), when[order]
