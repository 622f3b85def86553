"""The indexes of a segment: offsets to positions, timestamps to offsets, aborted transactions.

Entries are appended in order and read where they are looked up, by bisection. An index keeps only
its newest entries in memory, where most readers are; `kafkawire.log` reads its entries, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from ...log.indexes import ABORTED, ABORTED_VERSION, OFFSET_ENTRY, TIME_ENTRY
from ...records.record import NO_TIMESTAMP
from ..disks.disk import Disk
from ..errors import CorruptFile
from ..names import INDEX, TIME_INDEX, TRANSACTION_INDEX, file_name

NEWEST: Final = 1024
"""At least how many of the entries that were appended stay in memory, if there are so many."""
MAX_RELATIVE_OFFSET: Final = 0x7FFFFFFF


class OffsetPosition(NamedTuple):
    """The position of the batch with an offset."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """The largest timestamp so far and the last offset of its batch."""

    timestamp: int
    offset: int


class AbortedTxn(NamedTuple):
    """An aborted transaction. last_offset: of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class _Entries:
    """The entries of an index file, of one size."""

    def __init__(self, disk: Disk, path: str, layout: Struct, max_bytes: int) -> None:
        self.path = path
        self._disk = disk
        self._layout = layout
        self.limit = max_bytes // layout.size - 1
        """How many entries are added before the segment must be rolled: one is left for its end."""
        size = disk.size(path) if disk.exists(path) else 0
        self.whole = size % layout.size == 0
        self.count = size // layout.size
        self._newest: list[tuple[int, ...]] = []
        self._durable = False
        """Whether the file is on disk as it is; of one that was opened, nobody knows."""

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.count * self._layout.size

    def at(self, number: int) -> tuple[int, ...]:
        newest = number - self.count + len(self._newest)
        if newest >= 0:
            return self._newest[newest]
        size = self._layout.size
        data = self._disk.read(self.path, number * size, size)
        if len(data) < size:
            raise CorruptFile(self.path, f"entry {number} is missing")
        return self._layout.unpack(data)

    def add(self, *values: int) -> None:
        self._durable = False
        self._disk.append(self.path, self._layout.pack(*values))
        self.count += 1
        self._newest.append(values)
        if len(self._newest) > 2 * NEWEST:
            del self._newest[:NEWEST]

    def keep(self, count: int) -> None:
        """Cut the index to that number of entries."""
        self._durable = False
        if self._disk.exists(self.path):
            self._disk.truncate(self.path, count * self._layout.size)
        self.count = count
        self.whole = True
        self._newest.clear()

    def first_above(self, value: int, key: Callable[[tuple[int, ...]], int]) -> int:
        """Return the number of entries whose key is at most `value`."""
        newest = self._newest
        if newest and key(newest[0]) <= value:
            return self.count - len(newest) + bisect_right(newest, value, key=key)
        older = range(self.count - len(newest))
        return bisect_right(older, value, key=lambda number: key(self.at(number)))

    def flush(self) -> None:
        if not self._durable:
            if self._disk.exists(self.path):
                self._disk.fsync(self.path)
            self._durable = True


class OffsetIndex:
    """The `.index` of a segment."""

    def __init__(self, disk: Disk, folder: str, base_offset: int, max_bytes: int, end: str) -> None:
        path = file_name(folder, base_offset, INDEX + end)
        self.entries = _Entries(disk, path, OFFSET_ENTRY, max_bytes)
        self._base = base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry up to an offset."""
        index = self.entries.first_above(offset - self._base, lambda entry: entry[0])
        if index == 0:
            return OffsetPosition(self._base, 0)
        relative, position = self.entries.at(index - 1)
        return OffsetPosition(self._base + relative, position)

    def append(self, offset: int, position: int) -> None:
        self.entries.add(offset - self._base, position)

    def truncate(self, offset: int) -> None:
        """Remove the entries from an offset on."""
        self.entries.keep(self.entries.first_above(offset - self._base - 1, lambda each: each[0]))

    def check(self, segment_bytes: int) -> bool:
        """Whether the file can be that of a segment of this size: its end is looked at."""
        if not self.entries.whole or not self.entries.count:
            return self.entries.whole
        relative, position = self.entries.at(self.entries.count - 1)
        return relative > 0 and 0 < position < segment_bytes


class TimeIndex:
    """The `.timeindex` of a segment."""

    def __init__(self, disk: Disk, folder: str, base_offset: int, max_bytes: int, end: str) -> None:
        path = file_name(folder, base_offset, TIME_INDEX + end)
        self.entries = _Entries(disk, path, TIME_ENTRY, max_bytes)
        self._base = base_offset

    @property
    def last(self) -> TimestampOffset:
        """The last entry; no timestamp and the base offset if there is none."""
        return self._entry(self.entries.count - 1)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry up to a timestamp."""
        return self._entry(self.entries.first_above(timestamp, lambda entry: entry[0]) - 1)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Append an entry, if its timestamp is larger than the last."""
        if timestamp > self.last.timestamp:
            self.entries.add(timestamp, offset - self._base)

    def truncate(self, offset: int) -> None:
        """Remove the entries from an offset on."""
        self.entries.keep(self.entries.first_above(offset - self._base - 1, lambda each: each[1]))

    def check(self, next_offset: int) -> bool:
        """Whether the file can be that of a segment that ends at this offset."""
        last = self.last
        grows = self.entries.count < 2 or last.timestamp > self._entry(0).timestamp
        return self.entries.whole and grows and self._base <= last.offset <= next_offset

    def _entry(self, number: int) -> TimestampOffset:
        if number < 0:
            return TimestampOffset(NO_TIMESTAMP, self._base)
        timestamp, relative = self.entries.at(number)
        return TimestampOffset(timestamp, self._base + relative)


class TransactionIndex:
    """The `.txnindex` of a segment; there is a file only if a transaction was aborted."""

    def __init__(self, disk: Disk, folder: str, base_offset: int, end: str) -> None:
        path = file_name(folder, base_offset, TRANSACTION_INDEX + end)
        self.entries = _Entries(disk, path, ABORTED, 0)
        self._base = base_offset

    def __iter__(self) -> Iterator[AbortedTxn]:
        for number in range(self.entries.count):
            yield self._at(number)

    def append(self, aborted: AbortedTxn) -> None:
        self.entries.add(ABORTED_VERSION, *aborted)

    def truncate(self, offset: int) -> None:
        """Remove the transactions whose markers are at an offset or after it."""
        self.entries.keep(self.entries.first_above(offset - 1, lambda entry: entry[3]))

    def collect(self, start: int, end: int) -> tuple[list[AbortedTxn], bool]:
        """List transactions in a range of offsets; return whether later segments have none."""
        entries = []
        for aborted in self:
            if aborted.last_offset >= start and aborted.first_offset < end:
                entries.append(aborted)
            if aborted.last_stable_offset >= end:
                return entries, True
        return entries, False

    def check(self) -> bool:
        """Whether the file can be that of its segment: its end is looked at."""
        if not self.entries.whole or not self.entries.count:
            return self.entries.whole
        version, _, _, last_offset, _ = self.entries.at(self.entries.count - 1)
        return version == ABORTED_VERSION and last_offset >= self._base

    def _at(self, number: int) -> AbortedTxn:
        version, *values = self.entries.at(number)
        if version != ABORTED_VERSION:
            raise CorruptFile(self.entries.path, f"entry {number} has version {version}")
        return AbortedTxn(*values)
