"""The log that logs of segments are compared with: batches in a list, leader epochs, a time index.

Offsets only grow; a batch is stored as it is fetched, so a read neither copies nor decodes.

    log start ──── batches, magic 2 ──── high watermark ──── log end
    epochs: (leader epoch, first offset) ...
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkawire.records import Batch

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
"""Special timestamps of ListOffsets."""

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1


class Stored(NamedTuple):
    """A stored batch."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    data: bytes


class Found(NamedTuple):
    """An offset with its timestamp and leader epoch; -1 for none."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochStart(NamedTuple):
    """The start offset of a leader epoch."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The end offset of a leader epoch; both -1 if unknown."""

    epoch: int
    end_offset: int


class OffsetOutOfRange(LookupError):
    """The offset of a read is outside the log."""


@dataclass(slots=True)
class PartitionLog:
    """The batches of one partition."""

    log_start_offset: int = 0
    log_end_offset: int = 0
    size: int = 0
    epochs: list[EpochStart] = field(default_factory=list)
    _batches: list[Stored] = field(default_factory=list)
    _last_offsets: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    """The end position of each batch, in bytes since the log was created."""
    _latest: list[int] = field(default_factory=list)
    """The maximum timestamp up to each batch; computed on demand."""

    def __iter__(self) -> Iterator[Stored]:
        return iter(self._batches)

    @property
    def high_watermark(self) -> int:
        """The high watermark; all replicas share this log, so it is the log end offset."""
        return self.log_end_offset

    # -- writing

    def append(self, stored: Stored, leader_epoch: int) -> None:
        """Append a batch whose offsets start at `log_end_offset`."""
        assert stored.base_offset >= self.log_end_offset, "offsets only grow"
        self.start_epoch(leader_epoch, stored.base_offset)
        self._batches.append(stored)
        self._last_offsets.append(stored.last_offset)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(stored.data))
        self.log_end_offset = stored.last_offset + 1
        self.size += len(stored.data)

    def start_epoch(self, leader_epoch: int, offset: int) -> None:
        """Add the start of a leader epoch, if it is newer than the last."""
        if not self.epochs or leader_epoch > self.epochs[-1].epoch:
            while self.epochs and self.epochs[-1].start_offset >= offset:
                self.epochs.pop()  # an epoch without records
            self.epochs.append(EpochStart(leader_epoch, offset))

    def truncate(self, offset: int) -> None:
        """Truncate the log at an offset; a batch that spans it is removed whole."""
        keep = bisect_left(self._last_offsets, offset)
        for lost in self._batches[keep:]:
            self.size -= len(lost.data)
        del self._batches[keep:], self._last_offsets[keep:], self._ends[keep:], self._latest[keep:]
        self.log_start_offset = min(self.log_start_offset, offset)
        last = self._last_offsets[-1] + 1 if self._last_offsets else self.log_start_offset
        self.log_end_offset = min(self.log_end_offset, last)
        self.epochs = [each for each in self.epochs if each.start_offset < self.log_end_offset]

    def delete_before(self, offset: int) -> None:
        """Move the log start offset; batches wholly before it are deleted."""
        self.log_start_offset = max(self.log_start_offset, offset)
        deleted = bisect_left(self._last_offsets, self.log_start_offset)
        for lost in self._batches[:deleted]:
            self.size -= len(lost.data)
        if deleted:
            del self._batches[:deleted], self._last_offsets[:deleted], self._ends[:deleted]
            self._latest.clear()
        later = [each for each in self.epochs if each.start_offset > self.log_start_offset]
        now = [each for each in self.epochs if each.start_offset <= self.log_start_offset]
        self.epochs = [EpochStart(now[-1].epoch, self.log_start_offset), *later] if now else later

    # -- reading

    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> list[bytes]:
        """Return the batches from the one that contains `offset` on, up to `max_bytes`.

        at_least_one: return the first batch even if it is larger.
        Raises OffsetOutOfRange.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset)
        first = bisect_left(self._last_offsets, offset)
        parts: list[bytes] = []
        room = max_bytes
        for at in range(first, len(self._batches)):
            data = self._batches[at].data
            if len(data) > room and (parts or not at_least_one):
                break
            parts.append(data)
            room -= len(data)
        return parts

    def bytes_from(self, offset: int) -> int:
        """Return the bytes of the batches from the one that contains `offset` on."""
        at = bisect_left(self._last_offsets, offset)
        if at == len(self._batches):
            return 0
        return self._ends[-1] - self._ends[at] + len(self._batches[at].data)

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch of an offset; -1 for none."""
        at = bisect_right([each.start_offset for each in self.epochs], offset) - 1
        return self.epochs[at].epoch if at >= 0 else NO_EPOCH

    def end_of_epoch(self, epoch: int, current: int) -> EpochEnd:
        """Return the end of the largest epoch up to the requested one (KIP-101, KIP-279)."""
        if epoch == current:
            return EpochEnd(epoch, self.log_end_offset)
        at = bisect_right([each.epoch for each in self.epochs], epoch)
        if epoch < 0 or at == len(self.epochs):
            return EpochEnd(NO_EPOCH, NO_OFFSET)  # newer than anything written
        end = self.epochs[at].start_offset
        return EpochEnd(epoch if at == 0 else self.epochs[at - 1].epoch, end)

    def find(self, timestamp: int) -> Found | None:
        """Look up a timestamp of ListOffsets; None if no record is that late."""
        if timestamp == LATEST:
            epoch = self.epochs[-1].epoch if self.epochs else NO_EPOCH
            return Found(self.high_watermark, NO_TIMESTAMP, epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            start = self.log_start_offset
            return Found(start, NO_TIMESTAMP, self.epoch_of(start))
        if timestamp == MAX_TIMESTAMP:
            return self._latest_record()
        if timestamp < 0:
            return None  # there is no tiered storage
        for at in range(bisect_left(self._latest_index(), timestamp), len(self._batches)):
            stored = self._batches[at]
            if stored.max_timestamp >= timestamp:
                for record in Batch(stored.data, 0, len(stored.data)).records():
                    if record.timestamp >= timestamp and record.offset >= self.log_start_offset:
                        return self._found(record.offset, record.timestamp)
        return None

    def _latest_record(self) -> Found | None:
        index = self._latest_index()
        if not index:
            return None
        latest = self._batches[bisect_left(index, index[-1])]
        for record in Batch(latest.data, 0, len(latest.data)).records():
            if record.timestamp == latest.max_timestamp:
                return self._found(record.offset, record.timestamp)
        return None

    def _latest_index(self) -> list[int]:
        """Return the maximum timestamp up to each batch: it is monotonic, so it can be bisected."""
        index = self._latest
        for at in range(len(index), len(self._batches)):
            latest = self._batches[at].max_timestamp
            index.append(max(latest, index[-1]) if index else latest)
        return index

    def _found(self, offset: int, timestamp: int) -> Found:
        return Found(offset, timestamp, self.epoch_of(offset))
