"""The output of a task whose large values are files of a directory that all workers see.

What comes back to the driver is small: names of files, places in them, numbers of rows, facts.

    output rows of a step --large ones--> one file of the task | spill files, chunks
                              `--> TaskOutput
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import pyarrow as pa

from ..decode.groups import GroupItem
from ..decode.item_runs import ItemRun, ItemWriter
from ..decode.outputs import ITEM
from ..decode.scratch import Scratch
from ..decode.work import PACKETS, Batches
from ..shuffle.packets import Kind, row_of


class StoredPackets(NamedTuple):
    """A row of packets, and where its body is stored. kind, packet: sort keys within a bucket."""

    kind: int
    packet: int
    file: str
    at: int
    size: int


@dataclass(slots=True)
class TaskOutput:
    """The output of a task.

    rows: table -> spill files, with the number of rows in each; written: table -> finished files,
    with the number of rows in each; chunks: a file for each; shuffled: bucket -> rows of packets;
    items: bucket -> runs of group items.
    """

    rows: defaultdict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    written: defaultdict[str, list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    chunks: list[str] = field(default_factory=list)
    facts: list[bytes] = field(default_factory=list)
    shuffled: defaultdict[int, list[StoredPackets]] = field(
        default_factory=lambda: defaultdict(list)
    )
    items: defaultdict[int, list[ItemRun]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: TaskOutput) -> None:
        """Add the output of another task."""
        for table, files in other.rows.items():
            self.rows[table] += files
        for table, files in other.written.items():
            self.written[table] += files
        self.chunks += other.chunks
        self.facts += other.facts
        for bucket, stored in other.shuffled.items():
            self.shuffled[bucket] += stored
        for bucket, runs in other.items.items():
            self.items[bucket] += runs

    def take_fragments(self) -> list[tuple[int, list[StoredPackets]]]:
        """Take out the rows of IP fragments, by bucket and in order."""
        taken = []
        for bucket, stored in sorted(self.shuffled.items()):
            fragments = sorted(each for each in stored if each.kind == Kind.FRAGMENTS)
            if fragments:
                taken.append((bucket, fragments))
                self.shuffled[bucket] = [each for each in stored if each.kind != Kind.FRAGMENTS]
        return taken


class TaskFile:
    """The file of a task with the packets and group items for other tasks, made when needed."""

    def __init__(self, stack: ExitStack, scratch: Scratch, groups: int) -> None:
        self._stack, self._scratch, self._groups = stack, scratch, groups
        self._opened: tuple[str, IO[bytes]] | None = None
        self._items: ItemWriter | None = None

    def packets(self, kind: int, packet: int, body: bytes) -> StoredPackets:
        """Append a row of packets."""
        name, out = self._file()
        return StoredPackets(kind, packet, name, out.tell(), out.write(body))

    def item(self, item: GroupItem) -> None:
        """Append a group item."""
        if self._items is None:
            self._items = ItemWriter(*self._file(), self._groups)
        self._items.add(item)

    def runs(self) -> dict[int, list[ItemRun]]:
        """Return the runs of all items."""
        if self._items is None:
            return {}
        self._items.flush()
        return self._items.runs

    def _file(self) -> tuple[str, IO[bytes]]:
        if self._opened is None:
            self._opened = self._stack.enter_context(self._scratch.create())
        return self._opened


def collect_output(batches: Batches, scratch: Scratch, groups: int) -> TaskOutput:
    """Collect the output of a step; packets and group items are appended to a file."""
    output = TaskOutput()
    with ExitStack() as stack:
        file = TaskFile(stack, scratch, groups)
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            for kind, name, position, n, body in zip(*columns, strict=True):
                if kind == "rows":
                    output.rows[name].append((os.fsdecode(body), n))
                elif kind == "chunk":
                    output.chunks.append(name)
                elif kind == "facts":
                    output.facts.append(body)
                elif kind == ITEM:
                    file.item(GroupItem(name, position, n, body))
                elif kind == PACKETS:
                    output.shuffled[n].append(file.packets(int(name), position, body))
        for bucket, runs in file.runs().items():
            output.items[bucket] += runs
    return output


def stored_rows(
    scratch: Scratch, bucket: int, rows: Iterable[StoredPackets]
) -> Iterator[pa.RecordBatch]:
    """Yield the packets of a bucket."""
    for kind, packet, file, position, size in rows:
        yield row_of(bucket, Kind(kind), packet, scratch.read_range(file, position, size))
