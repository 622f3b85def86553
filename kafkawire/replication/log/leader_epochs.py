"""Where each leader epoch starts in a log, as Kafka's LeaderEpochFileCache.

Epochs and start offsets both grow.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from .replica_log import NO_EPOCH, EpochEndOffset


class EpochEntry(NamedTuple):
    """A leader epoch and its first offset."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The leader epochs of one log."""

    def __init__(self) -> None:
        self.entries: list[EpochEntry] = []

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch; later or conflicting ones are dropped."""
        if epoch == self.latest_epoch:
            return
        while self.entries and (
            self.entries[-1].epoch >= epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochEntry(epoch, start_offset))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the end of the largest epoch up to `epoch`; unknown if it is later than all."""
        if epoch == NO_EPOCH or epoch > self.latest_epoch:
            return EpochEndOffset()
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        index = bisect_right(self.entries, epoch, key=_epoch)
        end = self.entries[index].start_offset
        return EpochEndOffset(self.entries[index - 1].epoch if index else epoch, end)

    def truncate_from_end(self, offset: int) -> None:
        """Drop the epochs that start at `offset` or after it."""
        while self.entries and self.entries[-1].start_offset >= offset:
            self.entries.pop()

    def truncate_from_start(self, offset: int) -> None:
        """Let the epoch of `offset` start there, and drop those before."""
        index = bisect_right(self.entries, offset, key=_start)
        if index:
            self.entries[:index] = [EpochEntry(self.entries[index - 1].epoch, offset)]


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start(entry: EpochEntry) -> int:
    return entry.start_offset
