"""Group items on their way from the tasks of connections to the tasks of groups, in sorted runs.

A task of groups gets its items by group and in order, and has one chunk of each run in memory,
however many items a group has.

    items --buffered, sorted--> run of each bucket: chunk | chunk | ...    in the file of the task
    runs of a bucket --merged--> items
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import IO, Final, NamedTuple
from zlib import crc32

from .groups import GroupItem
from .scratch import Scratch

BUFFERED_BYTES: Final = 8 << 20
"""Bytes of items that are sorted at a time."""

CHUNK_ITEMS: Final = 256
SIZE: Final = 8
"""Bytes of the size in front of a chunk."""


class ItemRun(NamedTuple):
    """A sorted run of items: where it is in a file."""

    file: str
    at: int
    size: int


class ItemWriter:
    """Writes items to a file. runs: bucket -> runs."""

    def __init__(self, name: str, out: IO[bytes], buckets: int) -> None:
        self.runs: defaultdict[int, list[ItemRun]] = defaultdict(list)
        self._name = name
        self._out = out
        self._buckets = buckets
        self._buffered: defaultdict[int, list[GroupItem]] = defaultdict(list)
        self._size = 0

    def add(self, item: GroupItem) -> None:
        """Add an item."""
        bucket = crc32(item.group_id.encode()) % self._buckets
        self._buffered[bucket].append(item)
        self._size += len(item.item)
        if self._size >= BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is buffered, a run for each bucket."""
        for bucket, items in self._buffered.items():
            items.sort(key=_order)
            position = self._out.tell()
            for start in range(0, len(items), CHUNK_ITEMS):
                chunk = pickle.dumps([tuple(one) for one in items[start : start + CHUNK_ITEMS]])
                self._out.write(len(chunk).to_bytes(SIZE, "little") + chunk)
            self.runs[bucket].append(ItemRun(self._name, position, self._out.tell() - position))
        self._buffered.clear()
        self._size = 0


def merged(scratch: Scratch, runs: Iterable[ItemRun]) -> Iterator[GroupItem]:
    """Yield the items of runs by group and in order."""
    return merge(*(_items(scratch, run) for run in runs), key=_order)


def _items(scratch: Scratch, run: ItemRun) -> Iterator[GroupItem]:
    position, end = run.at, run.at + run.size
    while position < end:
        size = int.from_bytes(scratch.read_range(run.file, position, SIZE), "little")
        chunk = pickle.loads(scratch.read_range(run.file, position + SIZE, size))
        yield from (GroupItem(*one) for one in chunk)
        position += SIZE + size


def _order(item: GroupItem) -> tuple[str, int, int]:
    return item[:3]
