"""Writes the rows of a table to Parquet: few files in each directory, about in order of time.

Rows go to the directory of their date and API. A task writes one file in each directory that
it has rows for, and reports it; of the files of this application, only reported ones stay. A table
without rows has a file that states its columns.

    decoded batches --finish, split by date and API--> buffers --row groups--> partition/*.parquet
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext

from ...capture.files.columns import Ints
from ...capture.tables.parquet import columns_with_statistics, repeating_columns
from ..splitting.stores import Store, filesystem
from .finishing import ints
from .output_directory import PART, OutputFile, is_part

BY_API: Final = frozenset({"exchanges", "messages", "partitions"})
"""Tables that are partitioned by API, too."""

TIMES: Final = ("time", "response_time", "first_time")
"""Time columns; the first one that exists and is not null counts."""

DAY: Final = 86_400_000_000
NEVER: Final = -(1 << 63)
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name of the directory for rows without a date."""

GROUP_ROWS: Final = 1 << 16
"""Maximum rows of a row group."""

CUT_BYTES: Final = 12 << 20
"""Bytes of rows that are partitioned at a time."""

MANY_ROWS: Final = 1 << 12
"""So many rows of a partition are written at once; fewer are copied to a buffer."""

BUFFER_BYTES: Final = 16 << 20
"""Bytes of buffered rows, above which the largest buffers are written."""


def times(batch: pa.RecordBatch) -> Ints:
    """Return the time of each row in microseconds, or NEVER."""
    columns = [batch.column(name) for name in TIMES if name in batch.schema.names]
    first_times = pc.coalesce(*columns).cast(pa.int64())
    return ints(pc.fill_null(first_times, NEVER))


def by_partition(
    batches: list[pa.RecordBatch], *, by_api: bool
) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
    """Split rows by partition (directory), in time order.

    They are not copied if they are those of one partition in this order; otherwise the parts are
    slices of one copy.
    """
    when = np.concatenate([times(batch) for batch in batches])
    sort_key = when // DAY
    names = ["unknown"]
    if by_api:
        apis = pa.chunked_array([batch.column("api_name") for batch in batches])
        dictionary = pc.fill_null(apis.combine_chunks(), "unknown").dictionary_encode()
        names = dictionary.dictionary.to_pylist()
        sort_key = sort_key * len(names) + ints(dictionary.indices)
    if (sort_key == sort_key[0]).all() and (np.diff(when) >= 0).all():
        yield _partition(sort_key[0], names, by_api=by_api), batches
        return
    order = np.lexsort((when, sort_key))
    keys, ordered = sort_key[order], pa.concat_batches(batches).take(pa.array(order))
    cuts = (np.flatnonzero(np.diff(keys)) + 1).tolist()
    for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        partition = _partition(keys[start], names, by_api=by_api)
        yield partition, [ordered.slice(start, end - start)]


def _partition(key: Any, names: list[str], *, by_api: bool) -> str:
    day, api = divmod(int(key), len(names))
    return f"date={_date(day)}" + (f"/api={names[api]}" if by_api else "")


def _date(day: int) -> str:
    return NO_DATE if day == NEVER // DAY else str(np.datetime64(day, "D"))


@dataclass(frozen=True, slots=True)
class TableDirectory:
    """The directory of a table. finish: finishes batches; application: is in the names of files."""

    store: Store
    path: str
    by_api: bool
    finish: Callable[[pa.RecordBatch], pa.RecordBatch]
    application: str

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[tuple[str, int]]:
        """Write the rows of a task; returns the files and their rows."""
        with TableWriter(self) as writer:
            for batch in batches:
                writer.add(self.finish(batch))
            return writer.finish()

    def only(self, files: Iterable[tuple[str, int]]) -> list[OutputFile]:
        """Delete the other files of this application; returns the remaining ones, as reported.

        files: names, with the rows of each. Raises FileNotFoundError if one is missing.
        """
        store, rows = filesystem(self.store), dict(files)
        choose_files = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        start = len(self.path.strip("/")) + 1
        sizes: dict[str, int] = {}
        for info in store.get_file_info(choose_files):
            name = info.path.lstrip("/")[start:]
            if name in rows:
                sizes[name] = info.size or 0
            elif is_part(name, [self.application]):
                with suppress(FileNotFoundError):
                    store.delete_file(info.path)
        for name in rows:
            if name not in sizes:
                raise FileNotFoundError(
                    f"{self.store.uri(self.path)}/{name}: was deleted meanwhile"
                )
        table = self.path.rpartition("/")[2]
        return [OutputFile(f"{table}/{each}", rows[each], size) for each, size in sizes.items()]

    def empty(self) -> None:
        """Delete all files of this application."""
        self.only(())

    def write_schema(self, schema: pa.Schema) -> tuple[str, int]:
        """Write a file without rows, so that readers find the columns; returns its name and rows.

        It has a date, so that the type of this column is the usual one.
        """
        with TableWriter(self) as writer:
            file = writer.partition_file(_partition(0, ["unknown"], by_api=self.by_api))
            file.start(schema)
            return file.close()


class TableWriter:
    """Writes the rows of a table in one task; use it as a context manager."""

    def __init__(self, folder: TableDirectory) -> None:
        self._folder = folder
        self._files: dict[str, PartitionFile] = {}
        self._buffered = 0
        self._uncut: list[pa.RecordBatch] = []
        self._uncut_bytes = 0

    def __enter__(self) -> TableWriter:
        self._staging = TemporaryDirectory(prefix="kafkawire-")
        return self

    def __exit__(self, *_: object) -> None:
        self._staging.cleanup()

    def add(self, finished: pa.RecordBatch) -> None:
        """Write the rows of a batch, or collect them."""
        if len(finished):
            self._uncut.append(finished)
            self._uncut_bytes += finished.nbytes
        if self._uncut_bytes >= CUT_BYTES:
            self._cut()

    def finish(self) -> list[tuple[str, int]]:
        """Write everything; returns the files and their rows."""
        self._cut()
        closed = [partition.close() for partition in self._files.values()]
        pa.default_memory_pool().release_unused()
        return closed

    def _cut(self) -> None:
        if not self._uncut:
            return
        together, self._uncut, self._uncut_bytes = self._uncut, [], 0
        for name, rows in by_partition(together, by_api=self._folder.by_api):
            if name not in self._files:
                self._files[name] = self.partition_file(name)
            self._buffered += self._files[name].take(rows)
        while self._buffered > BUFFER_BYTES:
            self._buffered -= max(self._files.values(), key=lambda each: each.bytes).flush()

    def partition_file(self, name: str) -> PartitionFile:
        """Return a new file in a partition."""
        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        file = f"{name}/{PART}{self._folder.application}-{attempt:05d}.parquet"
        store, path = filesystem(self._folder.store), f"{self._folder.path}/{file}"
        directory, _, last = path.rpartition("/")
        store.create_dir(directory, recursive=True)
        if self._folder.store.is_local:
            return PartitionFile(file, f"{directory}/.{last}", path, store)
        # An open file of a store takes memory for multipart uploads, so it is local first.
        return PartitionFile(file, f"{self._staging.name}/{len(self._files)}", path, store)


class PartitionFile:
    """The file of a task in a partition.

    staging: its path while it is written; path: when it is complete. bytes: of buffered rows.
    """

    def __init__(self, file: str, staging: str, path: str, store: fs.FileSystem) -> None:
        self.bytes = 0
        self._file, self._near, self._path, self._store = file, staging, path, store
        self._held: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0

    def take(self, batches: list[pa.RecordBatch]) -> int:
        """Add rows, whole batches or a slice of one; returns the change in buffered bytes."""
        if sum(map(len, batches)) >= MANY_ROWS:
            self._held += batches
            return -self.flush()
        copies = [batch.take(pa.array(np.arange(len(batch)))) for batch in batches]
        self._held += copies
        size: int = sum(batch.nbytes for batch in copies)
        self.bytes += size
        return size

    def flush(self) -> int:
        """Write the buffered rows; returns how many bytes they were."""
        if not self._held:
            return 0
        table = pa.Table.from_batches(self._held)
        writer = self._writer or self.start(table.schema)
        writer.write_table(table, row_group_size=GROUP_ROWS)
        self._rows += len(table)
        size, self.bytes = self.bytes, 0
        self._held.clear()
        return size

    def start(self, schema: pa.Schema) -> pq.ParquetWriter:
        """Begin to write the file."""
        self._writer = pq.ParquetWriter(
            self._near,
            schema,
            compression="zstd",
            use_dictionary=list(repeating_columns(schema)),
            write_statistics=columns_with_statistics(schema),
        )
        return self._writer

    def close(self) -> tuple[str, int]:
        """Write the rest and move the file to its place; returns its name and rows."""
        self.flush()
        assert self._writer is not None
        self._writer.close()
        if isinstance(self._store, fs.LocalFileSystem):
            self._store.move(self._near, self._path)
        else:
            fs.copy_files(self._near, self._path, destination_filesystem=self._store)
        return self._file, self._rows
