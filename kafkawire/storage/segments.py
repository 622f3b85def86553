"""The segments of a log in the order of their offsets, and files that are deleted later.

A file that is no longer part of the log gets the suffix .deleted at once and is deleted when
it is due: who reads it may end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from heapq import heappop, heappush

from .disks.disk import Disk, delete_tree
from .names import DELETED
from .segment import LogSegment


class PendingDeletions:
    """Files and directories that are deleted when they are due."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._heap: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_ms(self) -> int | None:
        """When the first is due."""
        return self._heap[0][0] if self._heap else None

    def add(self, path: str, due_ms: int) -> None:
        """Delete a path at a time, unless it is deleted already."""
        heappush(self._heap, (due_ms, path))

    def run(self, now_ms: int, limit: int) -> None:
        """Delete what is due, up to so many files and directories."""
        while limit and self._heap and self._heap[0][0] <= now_ms:
            limit -= 1
            path = heappop(self._heap)[1]
            with suppress(FileNotFoundError):
                if self._disk.is_directory(path):
                    delete_tree(self._disk, path)
                else:
                    self._disk.delete(path)


class LogSegments:
    """The segments of a log."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[LogSegment] = []

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(list(self._segments))

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def active(self) -> LogSegment:
        """The last segment, to which batches are appended."""
        return self._segments[-1]

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def add(self, segment: LogSegment) -> None:
        """Add a segment, in the place of one with the same base offset."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._bases) and self._bases[index] == segment.base_offset:
            self._segments[index] = segment
        else:
            self._bases.insert(index, segment.base_offset)
            self._segments.insert(index, segment)

    def discard(self, segment: LogSegment) -> None:
        """Remove a segment."""
        index = bisect_left(self._bases, segment.base_offset)
        if index < len(self._segments) and self._segments[index] is segment:
            del self._bases[index], self._segments[index]

    def floor(self, offset: int) -> LogSegment | None:
        """Return the last segment that begins up to an offset."""
        index = bisect_right(self._bases, offset)
        return self._segments[index - 1] if index else None

    def higher(self, offset: int) -> LogSegment | None:
        """Return the first segment that begins after an offset."""
        index = bisect_right(self._bases, offset)
        return self._segments[index] if index < len(self._bases) else None

    def between(self, start: int, end: int) -> list[LogSegment]:
        """List the segments that may have offsets from `start` to before `end`."""
        first = max(0, bisect_right(self._bases, start) - 1)
        return self._segments[first : bisect_left(self._bases, end)] if start < end else []


def remove(
    disk: Disk, segment: LogSegment, deletions: PendingDeletions, due_ms: int | None
) -> None:
    """Take a segment's files out of the log; due_ms None deletes them now."""
    for path in segment.paths():
        if due_ms is None:
            disk.delete(path)
            continue
        disk.rename(path, path + DELETED)
        deletions.add(path + DELETED, due_ms)
