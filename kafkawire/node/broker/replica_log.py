"""The log of a partition's replica in a log directory, as replication needs it.

Checkpoints that must not be above the log are written before it is cut: all cuts go through
the log manager. A log whose directory fails raises LogOffline; its offsets stay known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from ...protocol import ErrorCode
from ...records import Batch, RecordBatches
from ...records.validated import ValidatedBatch
from ...replication import (
    AbortedTransaction,
    AppendRejected,
    EpochEndOffset,
    LogAppendInfo,
    LogOffline,
    TimestampOffset,
)
from ...storage import (
    AppendOrigin,
    CorruptFile,
    KafkaStorageError,
    LogManager,
    TopicPartition,
    UnifiedLog,
    find_offset,
)
from ...storage import AppendRejected as Refused

SIZES_KEPT: Final = 1024
CLIENT: Final = AppendOrigin.CLIENT
COORDINATOR: Final = AppendOrigin.COORDINATOR
FAILURES: Final = (KafkaStorageError, CorruptFile)
P = ParamSpec("P")
T = TypeVar("T")


def of_directory(
    method: Callable[Concatenate[StoredReplicaLog, P], T],
) -> Callable[Concatenate[StoredReplicaLog, P], T]:
    """Let a method raise LogOffline where the log directory fails, or the log is damaged."""

    @wraps(method)
    def guarded(self: StoredReplicaLog, /, *arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            return method(self, *arguments, **keywords)
        except FAILURES as error:
            raise self.offline(error) from None

    return guarded


class RecentSizes:
    """How many bytes there are between the ends of recent appends."""

    def __init__(self, end: int) -> None:
        self._ends = [end]
        self._totals = [0]

    def append(self, end: int, size: int) -> None:
        """Add an append."""
        self._ends.append(end)
        self._totals.append(self._totals[-1] + size)
        if len(self._ends) > 2 * SIZES_KEPT:
            del self._ends[:SIZES_KEPT], self._totals[:SIZES_KEPT]

    def between(self, start: int, end: int) -> int | None:
        """Return the bytes between two ends of appends; None for other offsets."""
        first, last = bisect_left(self._ends, start), bisect_left(self._ends, end)
        if last >= len(self._ends) or (self._ends[first], self._ends[last]) != (start, end):
            return None
        return self._totals[last] - self._totals[first]


class StoredReplicaLog:
    """The log of a replica: `kafkawire.replication.ReplicaLog` on a disk.

    now_ms: returns the wall-clock time. on_damage: called when a file of the log is damaged.
    """

    def __init__(
        self,
        logs: LogManager,
        partition: TopicPartition,
        now_ms: Callable[[], int],
        on_damage: Callable[[TopicPartition, CorruptFile], None] | None = None,
    ) -> None:
        self.partition = partition
        self._on_damage = on_damage
        self._logs = logs
        self._now_ms = now_ms
        self._place = logs.place(partition)
        self._sizes = RecentSizes(self.log.log_end_offset)

    @property
    def log(self) -> UnifiedLog:
        """The log as the log manager has it: it may move to another directory."""
        return self._place.log

    def offline(self, error: KafkaStorageError | CorruptFile) -> LogOffline:
        """Return what is raised where the log directory fails; report that a file is damaged."""
        if isinstance(error, CorruptFile) and self._on_damage is not None:
            self._on_damage(self.partition, error)
        return LogOffline(str(error))

    # -- offsets

    @property
    def log_start_offset(self) -> int:
        return self._place.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._place.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._place.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self._place.log.last_stable_offset

    @property
    def latest_epoch(self) -> int:
        return self.log.epochs.latest

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark, between log start and log end."""
        self._place.log.update_high_watermark(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the end of the largest epoch up to `leader_epoch` (KIP-279)."""
        return EpochEndOffset(*self.log.end_of_epoch(leader_epoch))

    @of_directory
    def assign_epoch_start_offset(self, leader_epoch: int, offset: int) -> None:
        """Remember where a leader epoch starts."""
        if leader_epoch != self.log.epochs.latest:
            self.log.epochs.assign(leader_epoch, offset)

    # -- writing

    # what each record takes is not decorated

    def append_as_leader(
        self, batches: Sequence[ValidatedBatch], leader_epoch: int, internal: bool = False
    ) -> LogAppendInfo:
        """Append batches with the next offsets. internal: the broker's own. AppendRejected."""
        log = self._place.log
        offset = log.log_end_offset
        stored: list[Batch] = []
        for each in batches:
            data = each.assigned(offset, leader_epoch)
            stored.append(Batch(data, 0, len(data)))
            offset += each.batch.last_offset_delta + 1
        data = stored[0].data if len(stored) == 1 else b"".join(each.data for each in stored)
        try:
            info = log.append(data, self._now_ms(), COORDINATOR if internal else CLIENT, stored)
        except Refused as error:
            checked = error.error is not ErrorCode.RECORD_LIST_TOO_LARGE
            raise AppendRejected(error.error, error.reason, content_checked=checked) from None
        except FAILURES as error:
            raise self.offline(error) from None
        if info.duplicate is not None:  # Kafka's clients get its timestamp, also of CreateTime
            return LogAppendInfo(info.first_offset, info.last_offset, info.max_timestamp)
        self._sizes.append(info.last_offset + 1, len(data))
        return LogAppendInfo(info.first_offset, info.last_offset, batches[0].log_append_time_ms)

    @of_directory
    def append_as_follower(self, records: bytes) -> None:
        """Append batches as they are; those that are here already are left out.

        The first of an empty log may begin before the log start offset.
        """
        for batch in RecordBatches(records):
            start, end = self.log.log_start_offset, self.log.log_end_offset
            if batch.base_offset < end:
                if start < end or batch.last_offset < end:
                    continue
                self._logs.truncate_fully(self.partition, batch.base_offset, self._now_ms())
            data = bytes(batch.data[batch.start : batch.end])
            try:
                self.log.append(data, self._now_ms(), AppendOrigin.REPLICATION)
            except Refused as error:
                raise AppendRejected(error.error, error.reason) from None
            self._sizes.append(self.log.log_end_offset, len(data))
            if batch.base_offset < start == end:
                self._logs.delete_records(self.partition, start)

    @of_directory
    def truncate_to(self, offset: int) -> None:
        """Drop what is at `offset` and after it, with leader epochs that have no records then."""
        if offset < self.log.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._logs.truncate(self.partition, offset, self._now_ms())
        self._sizes = RecentSizes(self.log.log_end_offset)

    @of_directory
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log starts and ends at `offset`."""
        self._logs.truncate_fully(self.partition, offset, self._now_ms())
        self._sizes = RecentSizes(offset)

    @of_directory
    def increment_log_start_offset(self, offset: int) -> None:
        """Delete records before `offset`, if they are still there."""
        if offset > self.log.log_start_offset:
            self._logs.delete_records(self.partition, min(offset, self.log.log_end_offset))

    # -- reading

    def read(self, offset: int, max_bytes: int, max_offset: int, at_least_one: bool) -> bytes:
        """Return whole batches from the one with `offset` on, all before `max_offset`."""
        log = self._place.log
        if offset < log.log_start_offset:
            offset = log.log_start_offset
        if offset >= max_offset or offset >= log.log_end_offset:
            return b""
        try:
            parts = log.read(offset, max_bytes, at_least_one, max_offset)
        except FAILURES as error:
            raise self.offline(error) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def size_between(self, start: int, end: int) -> int:
        """Return the bytes of batches from `start` to before `end`; 0 if the directory fails."""
        if start >= end:
            return 0
        size = self._sizes.between(start, end)
        if size is None:
            with suppress(*FAILURES):
                size = self.log.bytes_from(start) - self.log.bytes_from(end)
        return size or 0

    @of_directory
    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """List the aborted transactions with records between two offsets."""
        aborted = self.log.aborted_transactions(start, end)
        return [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted]

    @of_directory
    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Find the first record at or after a timestamp; MAX_TIMESTAMP: the latest of all."""
        position = find_offset(self.log, timestamp)
        return None if position is None else TimestampOffset(position.timestamp, position.offset)
