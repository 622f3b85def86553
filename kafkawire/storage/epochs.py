"""The leader epochs of a partition and where each began, in memory and in its checkpoint.

Epochs and start offsets grow; each change is durable before the method returns, so no batch
of an epoch is in the log before the epoch is in the checkpoint.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from .disks.disk import Disk
from .formats import EpochEntry, read_epoch_checkpoint, write_epoch_checkpoint

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochEnd(NamedTuple):
    """The end offset of a leader epoch; both -1 if unknown."""

    epoch: int
    end_offset: int


class LeaderEpochFileCache:
    """The leader epochs of a partition."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self.folder = folder
        self._disk = disk
        self.entries = read_epoch_checkpoint(disk, folder)

    @property
    def latest(self) -> int:
        """The latest epoch; -1 for none."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch, unless it is the latest; entries that it contradicts are removed."""
        if self.entries:
            last = self.entries[-1]
            if last.epoch == epoch and start_offset >= last.start_offset:
                return
        kept = [
            each for each in self.entries if each.epoch < epoch and each.start_offset < start_offset
        ]
        self._write([*kept, EpochEntry(epoch, start_offset)])

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at an offset or after it."""
        self._write([each for each in self.entries if each.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that end up to an offset; the one with the offset begins there."""
        index = bisect_right(self.entries, start_offset, key=lambda each: each.start_offset)
        if index:
            first = EpochEntry(self.entries[index - 1].epoch, start_offset)
            self._write([first, *self.entries[index:]])

    def clear(self) -> None:
        """Remove all epochs."""
        self._write([])

    def epoch_of(self, offset: int) -> int:
        """Return the epoch of an offset; -1 for none."""
        index = bisect_right(self.entries, offset, key=lambda each: each.start_offset) - 1
        return self.entries[index].epoch if index >= 0 else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return the end of the largest epoch up to the requested one (KIP-101, KIP-279)."""
        if epoch == NO_EPOCH:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        index = bisect_right(self.entries, epoch, key=lambda each: each.epoch)
        if index == len(self.entries):
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        end = self.entries[index].start_offset
        return EpochEnd(epoch if index == 0 else self.entries[index - 1].epoch, end)

    def _write(self, entries: list[EpochEntry]) -> None:
        if entries != self.entries:
            self.entries = entries
            write_epoch_checkpoint(self._disk, self.folder, entries)
