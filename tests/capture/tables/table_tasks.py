"""Makes tables of tasks in one process, as `decode --table ... --jobs N` does in several."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.frames.decoding import LocatedItem
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.tables import BATCH_ROWS, TABLES, read_tables
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.tasks.making import Maker
from kafkawire.capture.tables.tasks.merging import Merger
from kafkawire.capture.tables.tasks.splitting import GROUP_EVENTS, Splitter
from kafkawire.capture.tables.tasks.task import Recipient, Task, deserialise, serialise

Batches = Iterator[tuple[str, pa.RecordBatch]]


class SmallBatches(Traffic):
    """Captures whose items come in batches of a few, so that tasks may end after any of them."""

    items = 3

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Yield small batches."""
        for batch in super().batches():
            for at in range(0, len(batch), self.items):
                yield batch[at : at + self.items]


class Process:
    """Stands for a process: it has nothing but what it gets with its tasks."""

    def __init__(self, files: Sequence[Path], tables: Sequence[str]) -> None:
        made = [name for name in tables if name != GROUP_EVENTS]
        self._maker = Maker(Context(Traffic(files)), made, BATCH_ROWS, defer_records=True)
        self._recipient = Recipient()

    def make(self, task: Task, learned: list[tuple[bytes, str]], merger: Merger) -> Batches:
        """Make a task that was pickled, and pickle what it makes."""
        serialised, frames = serialise(*self._recipient.tailored(task, learned))
        self._recipient.got(task)
        serialised = pickle.loads(pickle.dumps(serialised))
        self._maker.learn(serialised.names)
        rows = self._maker.make(deserialise(serialised, b"".join(frames)))
        yield from rows.batches
        merger.add(pickle.loads(pickle.dumps(rows.connections)))


class Split:
    """Tables of captures, made in tasks of at most a number of bytes by two processes.

    tasks: the number of tasks; restored: the fetch sessions that they restored.
    """

    def __init__(self, files: Sequence[Path], tables: Sequence[str], max_bytes: int) -> None:
        self.tasks = self.restored = 0
        context = Context(SmallBatches(files))
        self._splitter = Splitter(context, tables, max_bytes=max_bytes)
        self._merger = Merger(context, self._splitter, BATCH_ROWS)
        self._processes = [Process(files, tables) for _ in range(2)]
        self.rows = collected(self._batches(), tables)

    def _batches(self) -> Batches:
        for task in self._splitter.tasks():
            if task is not None:
                self.restored += len(task.restored)
                process = self._processes[self.tasks % 2]
                self.tasks += 1
                yield from process.make(task, self._splitter.learned, self._merger)
            yield from self._merger.batches()
        yield from self._merger.batches(last=True)


def whole(files: Sequence[Path], tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Read tables as one process does."""
    return collected(read_tables(files, tables), tables)


def collected(batches: Batches, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Collect the rows of each table."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for name, batch in batches:
        assert batch.schema.equals(TABLES[name].schema)
        rows[name] += batch.to_pylist()
    return rows
