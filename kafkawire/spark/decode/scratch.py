"""A directory that all workers see: large values go through its files, past Spark and Java.

A file is complete before its name is known to anyone, and has a name of its own, so a task may
be repeated. What a lost task wrote stays unused until the directory is removed.

    task --rows, chunks, packets, group items--> files | names --Spark--> task --> values
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext

from ..options import Options
from ..splitting.stores import Store, explained, filesystem, is_uri, located

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COPIED: Final = 1 << 20
"""Bytes that are copied to a store at a time."""

ATTEMPTS: Final = 20
"""How often removing a directory is tried."""

_NUMBERS: Final = count()
"""Makes names unique in a process."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A directory of a store. path: as the store expects it."""

    path: str
    store: Store = field(default=Store())

    @contextmanager
    def create(self, suffix: str = "") -> Iterator[tuple[str, IO[bytes]]]:
        """Create a file; yields its name, under which it exists when the block has ended."""
        if self.store.is_local:
            number, name = tempfile.mkstemp(suffix, dir=self.path)
            with open(number, "wb") as out:
                yield name, out
            return
        name = f"{self.path}/{_task()}-{next(_NUMBERS)}{suffix}"
        # An open file of a store takes memory for uploads, so it is local first.
        with tempfile.TemporaryFile() as local:
            yield name, local
            local.seek(0)
            with (
                explained(self.store.uri(name)),
                filesystem(self.store).open_output_stream(name) as out,
            ):
                shutil.copyfileobj(local, out, COPIED)

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        if self.store.is_local:
            return Path(name).read_bytes()
        with explained(self.store.uri(name)), self.opened(name) as file:
            data: bytes = file.read()
            return data

    def read_range(self, name: str, position: int, size: int) -> bytes:
        """Read a range of a file."""
        if not self.store.is_local:
            with explained(self.store.uri(name)), self.opened(name) as file:
                data: bytes = file.read_at(size, position)
                return data
        number = os.open(name, os.O_RDONLY)
        try:
            return os.pread(number, size, position)
        finally:
            os.close(number)

    def opened(self, name: str) -> pa.NativeFile:
        """Open a file for Arrow; a local one is mapped into memory."""
        if self.store.is_local:
            return pa.memory_map(name)
        return filesystem(self.store).open_input_file(name)

    def make(self) -> Scratch:
        """Make the directory, empty."""
        self.remove()
        filesystem(self.store).create_dir(self.path, recursive=True)
        return self

    def remove(self) -> None:
        """Remove the directory with all of its files, if it exists."""
        if self.store.is_local:
            for _ in range(ATTEMPTS):
                # a task that is being cancelled may still make files
                shutil.rmtree(self.path, ignore_errors=True)
                if not Path(self.path).exists():
                    return
            shutil.rmtree(self.path)
            return
        file_system = filesystem(self.store)
        if file_system.get_file_info(self.path).type.name != "NotFound":
            file_system.delete_dir(self.path)


def chosen(spark: SparkSession, options: Options) -> Scratch | None:
    """Make a directory that all workers see: in that of the options, or of a local master.

    None if there is neither. Spark removes the directory of a local master when it ends.
    """
    context: Any = spark.sparkContext
    name = f"kafkawire-{context.applicationId}-{next(_NUMBERS)}"
    if options.scratch is not None and is_uri(options.scratch):
        store, path = located(options.scratch, options.others)
        return Scratch(f"{path.rstrip('/')}/{name}", store).make()
    if options.scratch is not None:
        return Scratch(str(Path(options.scratch).absolute() / name)).make()
    if context.master.startswith("local"):
        return Scratch(f"{context._temp_dir}/{name}").make()
    return None


def _task() -> int:
    """Return the number of the running attempt of a task, unique in its application."""
    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()
