"""The last step of the job: a table's rows into Parquet, few files to a directory, about in time.

Law: rows lie in the directory of their date and API; a task writes a file in each directory that it
has rows for, and tells which; only those stay.

    decoded batches --finish, cut by date and API--> cells, held --row groups--> cell/file.parquet
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext

from ...capture.files.blocks import Ints
from ...capture.tables.parquet import repeating_columns
from ..splitting.stores import Store, filesystem

BY_API: Final = frozenset({"exchanges", "messages", "partitions"})
"""Tables that are cut by API, too."""

TIMES: Final = ("time", "response_time", "first_time")
"""Columns that say the time of a row, the first one that is there and not null."""

DAY: Final = 86_400_000_000
NEVER: Final = -(1 << 63)
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the directory of rows without a date."""

GROUP_ROWS: Final = 1 << 16
"""Rows of a row group at most."""

CUT_BYTES: Final = 12 << 20
"""Bytes of rows that are cut at a time."""

MANY_ROWS: Final = 1 << 12
"""Rows of a directory that are written as soon as they are cut; fewer are copied, and wait."""

HELD_BYTES: Final = 16 << 20
"""Bytes of rows that wait, until those are written of which there are most."""

WRITTEN: Final = pa.schema([pa.field("file", pa.string()), pa.field("rows", pa.int64())])


def times(batch: pa.RecordBatch) -> Ints:
    """Say the time of each row, in microseconds; NEVER where it has none."""
    there = [batch.column(name) for name in TIMES if name in batch.schema.names]
    known = pc.coalesce(*there).cast(pa.int64())
    found: Ints = pc.fill_null(known, NEVER).to_numpy(zero_copy_only=False)
    return found


def gathered(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Put small batches together, until they have so many bytes."""
    held: list[pa.RecordBatch] = []
    bytes = 0
    for batch in batches:
        held.append(batch)
        bytes += batch.nbytes
        if bytes >= size:
            yield pa.concat_batches(held)
            held, bytes = [], 0
    if held:
        yield pa.concat_batches(held)


def cut(batch: pa.RecordBatch, *, by_api: bool) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut a batch by cell: the directory that rows go to; they are stretches of one copy, in order
    of time.
    """
    when = times(batch)
    place = when // DAY
    names = ["unknown"]
    if by_api:
        apis = pc.fill_null(batch.column("api_name"), "unknown").dictionary_encode()
        names = apis.dictionary.to_pylist()
        place = place * len(names) + apis.indices.to_numpy()
    order = np.lexsort((when, place))
    places, ordered = place[order], batch.take(pa.array(order))
    cuts = (np.flatnonzero(np.diff(places)) + 1).tolist()
    for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        day, api = divmod(int(places[start]), len(names))
        cell = f"date={_date(day)}" + (f"/api={names[api]}" if by_api else "")
        yield cell, ordered.slice(start, end - start)


def _date(day: int) -> str:
    return NO_DATE if day == NEVER // DAY else str(np.datetime64(day, "D"))


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a table is written. finish: makes batches what they are in the end."""

    store: Store
    path: str
    by_api: bool
    finish: Callable[[pa.RecordBatch], pa.RecordBatch]

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of a task; tell the files."""
        cells: dict[str, Cell] = {}
        held = 0
        finished = (found for batch in batches if len(found := self.finish(batch)))
        with TemporaryDirectory(prefix="kafkawire-") as near:
            for batch in gathered(finished, CUT_BYTES):
                for name, mine in cut(batch, by_api=self.by_api):
                    if name not in cells:
                        cells[name] = self._cell(name, near, len(cells))
                    held += cells[name].take(mine)
                while held > HELD_BYTES:
                    held -= max(cells.values(), key=lambda cell: cell.bytes).flush()
            for cell in cells.values():
                yield cell.close()
        pa.default_memory_pool().release_unused()

    def _cell(self, name: str, near: str, number: int) -> Cell:
        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        file = f"{name}/part-{attempt:05d}.parquet"
        store, path = filesystem(self.store), f"{self.path}/{file}"
        folder, _, last = path.rpartition("/")
        store.create_dir(folder, recursive=True)
        if self.store.is_local:
            return Cell(file, f"{folder}/.{last}", path, store)
        # Each file that a store has open takes memory for its parts: so they are written here.
        return Cell(file, f"{near}/{number}", path, store)

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


class Cell:
    """The file of a task in a directory. near: where it grows; path: where it is when it is whole.
    bytes: of rows that are held.
    """

    def __init__(self, file: str, near: str, path: str, store: fs.FileSystem) -> None:
        self.bytes = 0
        self._file, self._near, self._path, self._store = file, near, path, store
        self._held: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0

    def take(self, batch: pa.RecordBatch) -> int:
        """Take rows, which are a stretch of many; returns how many bytes more are held."""
        if len(batch) >= MANY_ROWS:
            self._held.append(batch)
            return -self.flush()
        self._held.append(batch.take(pa.array(np.arange(len(batch)))))
        size: int = self._held[-1].nbytes
        self.bytes += size
        return size

    def flush(self) -> int:
        """Write what is held; returns how many bytes that was."""
        if not self._held:
            return 0
        table = pa.Table.from_batches(self._held)
        if self._writer is None:
            repeating = list(repeating_columns(table.schema))
            self._writer = pq.ParquetWriter(
                self._near, table.schema, compression="zstd", use_dictionary=repeating
            )
        self._writer.write_table(table, row_group_size=GROUP_ROWS)
        self._rows += len(table)
        size, self.bytes = self.bytes, 0
        self._held.clear()
        return size

    def close(self) -> pa.RecordBatch:
        """Write the rest, and put the file where it belongs; tell what it is."""
        self.flush()
        assert self._writer is not None
        self._writer.close()
        if isinstance(self._store, fs.LocalFileSystem):
            self._store.move(self._near, self._path)
        else:
            fs.copy_files(self._near, self._path, destination_filesystem=self._store)
        return pa.RecordBatch.from_pydict({"file": [self._file], "rows": [self._rows]}, WRITTEN)
