"""The log of a replica: an interface, and a log in memory that can crash.

Offsets are contiguous; an epoch never decreases; batches are Kafka's, magic 2, with their
offsets and leader epochs. What was not flushed may be lost in a crash.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..records import RecordBatches


class OffsetAndEpoch(NamedTuple):
    """An end offset (exclusive) and the epoch of the record before it."""

    offset: int
    epoch: int

    def is_behind(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here is less up to date: epochs first, then lengths."""
        return (self.epoch, self.offset) < (other.epoch, other.offset)


SnapshotId = OffsetAndEpoch
"""A snapshot is named by where it ends: `<offset>-<epoch>.checkpoint`."""


class ReplicatedLog(Protocol):
    """What a replica needs of a log."""

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends; at least where its newest snapshot does."""

    def append(self, batches: bytes) -> None:
        """Append batches that continue the log."""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one with `offset` on; at least one, if there is one."""

    def truncate(self, end_offset: int) -> None:
        """Remove the batches from `end_offset` on."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch up to `epoch` that the log knows, and where it ends.

        Epoch -1 and the start offset if there is none.
        """

    def flush(self) -> None:
        """Make all of the log durable."""

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The id of the newest snapshot."""

    def snapshot(self, id: SnapshotId) -> bytes | None:
        """Return the bytes of a snapshot; None if there is none of that id."""

    def store_snapshot(self, id: SnapshotId, data: bytes) -> None:
        """Store a snapshot durably, and drop the log before it, or all of it if it ends before."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in a log."""

    base_offset: int
    last_offset: int
    epoch: int
    data: bytes


class MemoryLog:
    """A log in memory, with `crash` for simulations."""

    def __init__(self) -> None:
        self._batches: list[StoredBatch] = []
        self._flushed = 0  # batches
        self._snapshots: dict[SnapshotId, bytes] = {}
        self._latest: SnapshotId | None = None

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return 0 if self._latest is None else self._latest.offset

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends."""
        if self._batches:
            last = self._batches[-1]
            return OffsetAndEpoch(last.last_offset + 1, last.epoch)
        return self._latest or OffsetAndEpoch(0, 0)

    @property
    def batches(self) -> tuple[StoredBatch, ...]:
        """All batches, for checks."""
        return tuple(self._batches)

    def append(self, batches: bytes) -> None:
        """Append batches that continue the log."""
        for batch in RecordBatches(batches):
            expected = self.end
            if batch.base_offset != expected.offset or batch.partition_leader_epoch < (
                expected.epoch
            ):
                end = OffsetAndEpoch(batch.base_offset, batch.partition_leader_epoch)
                raise ValueError(f"batch {end} does not continue a log that ends at {expected}")
            self._batches.append(
                StoredBatch(
                    batch.base_offset,
                    batch.last_offset,
                    batch.partition_leader_epoch,
                    batches[batch.start : batch.end],
                )
            )

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one with `offset` on."""
        batches: list[bytes] = []
        size = 0
        first = bisect_right(self._batches, offset, key=lambda batch: batch.base_offset) - 1
        for batch in self._batches[max(first, 0) :]:
            if batch.last_offset < offset:
                continue
            if batches and size + len(batch.data) > max_bytes:
                break
            batches.append(batch.data)
            size += len(batch.data)
        return b"".join(batches)

    def truncate(self, end_offset: int) -> None:
        """Remove the batches from `end_offset` on."""
        kept = bisect_right(self._batches, end_offset - 1, key=lambda batch: batch.last_offset)
        del self._batches[kept:]
        self._flushed = min(self._flushed, kept)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch up to `epoch` that the log knows, and where it ends."""
        after = bisect_right(self._batches, epoch, key=lambda batch: batch.epoch)
        if after:
            last = self._batches[after - 1]
            return OffsetAndEpoch(last.last_offset + 1, last.epoch)
        if self._latest is not None and self._latest.epoch <= epoch:
            return self._latest
        return OffsetAndEpoch(self.start_offset, -1 if self._batches or self._latest else 0)

    def flush(self) -> None:
        """Make all of the log durable."""
        self._flushed = len(self._batches)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The id of the newest snapshot."""
        return self._latest

    def snapshot(self, id: SnapshotId) -> bytes | None:
        """Return the bytes of a snapshot."""
        return self._snapshots.get(id)

    def store_snapshot(self, id: SnapshotId, data: bytes) -> None:
        """Store a snapshot durably, and drop the log before it, or all of it if it ends before."""
        if self._latest is not None and id.offset < self._latest.offset:
            return
        older = self._latest  # kept for replicas that are fetching it
        self._snapshots = {each: self._snapshots[each] for each in [older] if each is not None}
        self._snapshots[id] = data
        contains = self.end_offset_for_epoch(id.epoch)
        self._latest = id
        if contains.epoch != id.epoch or contains.offset < id.offset:
            self._batches.clear()
            self._flushed = 0
            return
        dropped = bisect_right(self._batches, id.offset - 1, key=lambda batch: batch.last_offset)
        del self._batches[:dropped]
        self._flushed = max(self._flushed - dropped, 0)

    def crash(self, kept: int = 0) -> int:
        """Lose unflushed batches, except the first `kept` of them; return how many were lost."""
        left = min(len(self._batches), self._flushed + kept)
        lost = len(self._batches) - left
        del self._batches[left:]
        self._flushed = left
        return lost

    @property
    def unflushed(self) -> int:
        """How many batches a crash would lose at most."""
        return len(self._batches) - self._flushed
