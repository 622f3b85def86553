"""A replica's log in memory: batches, leader epochs, transactions, and what a crash leaves.

What was flushed survives a crash, and so do the checkpoints; the rest may be lost from the
end. Batches are stored as they are fetched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ...records import Batch, RecordBatches
from ...records.validated import ValidatedBatch
from .leader_epochs import LeaderEpochs
from .replica_log import (
    MAX_TIMESTAMP,
    AbortedTransaction,
    EpochEndOffset,
    LogAppendInfo,
    TimestampOffset,
)
from .transactions import Transactions


class Stored(NamedTuple):
    """A batch in the log. end: the bytes up to its end, since the log was created."""

    base_offset: int
    last_offset: int
    end: int
    data: bytes


class MemoryLog:
    """The log of one replica."""

    def __init__(self) -> None:
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.flushed_offset = 0
        self.epochs = LeaderEpochs()
        self.batches: list[Stored] = []
        self._transactions = Transactions()

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    @property
    def last_stable_offset(self) -> int:
        first = self._transactions.first_unstable_offset(self.high_watermark)
        return self.high_watermark if first is None else min(first, self.high_watermark)

    # -- writing

    def append_as_leader(
        self,
        batches: Sequence[ValidatedBatch],
        leader_epoch: int,
        internal: bool = False,  # noqa: ARG002 - no producers are checked here
    ) -> LogAppendInfo:
        """Append batches with the next offsets."""
        first = self.log_end_offset
        for each in batches:
            data = each.assigned(self.log_end_offset, leader_epoch)
            self._append(Batch(data, 0, len(data)), data)
        return LogAppendInfo(first, self.log_end_offset - 1, batches[0].log_append_time_ms)

    def append_as_follower(self, records: bytes) -> None:
        """Append batches as they are; those that are here already are left out.

        The first of an empty log may begin before the log start offset.
        """
        for batch in RecordBatches(records):
            first = batch.last_offset if not self.batches else batch.base_offset
            if first >= self.log_end_offset:
                self._append(batch, bytes(batch.data[batch.start : batch.end]))

    def _append(self, batch: Batch, data: bytes) -> None:
        self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        end = (self.batches[-1].end if self.batches else 0) + len(data)
        self.batches.append(Stored(batch.base_offset, batch.last_offset, end, data))
        self.log_end_offset = batch.last_offset + 1
        self._transactions.append(batch)

    def assign_epoch_start_offset(self, leader_epoch: int, offset: int) -> None:
        """Remember where a leader epoch starts."""
        self.epochs.assign(leader_epoch, offset)

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that reach `offset`."""
        if offset >= self.log_end_offset:  # an epoch that began here and has no records goes, too
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        if offset < self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        keep = bisect_left(self.batches, offset, key=_last)
        del self.batches[keep:]
        self.log_end_offset = max(
            self.log_start_offset, self.batches[-1].last_offset + 1 if self.batches else 0
        )
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._transactions = Transactions()
        for stored in self.batches:
            self._transactions.append(Batch(stored.data, 0, len(stored.data)))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log starts and ends at `offset`."""
        self.batches.clear()
        self.epochs = LeaderEpochs()
        self._transactions = Transactions()
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.flushed_offset = min(self.flushed_offset, offset)

    def increment_log_start_offset(self, offset: int) -> None:
        """Delete records before `offset`; a batch that has later ones stays."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = min(offset, self.log_end_offset)
        self.high_watermark = max(self.high_watermark, self.log_start_offset)
        del self.batches[: bisect_left(self.batches, self.log_start_offset, key=_last)]
        self.epochs.truncate_from_start(self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark, between log start and log end."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))

    # -- reading

    def read(self, offset: int, max_bytes: int, max_offset: int, at_least_one: bool) -> bytes:
        """Return whole batches from the one with `offset` on, all before `max_offset`."""
        first = bisect_left(self.batches, offset, key=_last)
        limit = bisect_left(self.batches, max_offset, key=_last)
        if first >= limit:
            return b""
        room = self._begin(first) + max_bytes
        last = bisect_right(self.batches, room, lo=first, hi=limit, key=_end)
        if last == first and at_least_one:
            last = first + 1
        return b"".join([stored.data for stored in self.batches[first:last]])

    def size_between(self, start: int, end: int) -> int:
        """Return the bytes of the batches with offsets from `start` to before `end`."""
        first = bisect_left(self.batches, start, key=_last)
        last = bisect_left(self.batches, end, key=_last)
        return self._begin(last) - self._begin(first) if last > first else 0

    def _begin(self, at: int) -> int:
        if at == len(self.batches):
            return self.batches[-1].end if self.batches else 0
        return self.batches[at].end - len(self.batches[at].data)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the end of the largest epoch up to `leader_epoch` (KIP-279)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """List the aborted transactions with records between two offsets."""
        return self._transactions.aborted(start, end)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Find the first record at or after a timestamp; MAX_TIMESTAMP: the latest of all."""
        batches = [Batch(stored.data, 0, len(stored.data)) for stored in self.batches]
        if timestamp == MAX_TIMESTAMP:
            timestamp = max((batch.max_timestamp for batch in batches), default=timestamp)
        for batch in batches:
            if batch.max_timestamp < timestamp:
                continue
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= self.log_start_offset:
                    return TimestampOffset(record.timestamp, record.offset)
        return None

    # -- crashes

    def flush(self) -> None:
        """Let what is written survive crashes."""
        self.flushed_offset = self.log_end_offset

    def crash(self, end_offset: int, high_watermark: int) -> None:
        """Lose what is at `end_offset` and after it, down to the flushed offset at most.

        high_watermark: the one of the checkpoint.
        """
        self.truncate_to(max(end_offset, self.flushed_offset))
        self.update_high_watermark(high_watermark)


def _last(stored: Stored) -> int:
    return stored.last_offset


def _end(stored: Stored) -> int:
    return stored.end
