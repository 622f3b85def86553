"""The log of a partition: segments, leader epochs, producers, and how far it is durable.

Offsets only grow; batches are stored as they are fetched. A name or a cut that later appends
build on is durable before the method returns; batches are when `flush` returns.

    log start ── segments ── recovery point (flushed to here) ── high watermark ── log end
"""

# over 300 lines: one class for a log

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter
from typing import Final

from ..records import Batch
from .appending import LogAppendInfo, check_place, read_batches
from .config import LogConfig
from .disks.disk import Disk
from .epochs import EpochEnd
from .errors import OffsetOutOfRange
from .loader import NEW_LOG, LogCheckpoint, LogLoader, missing, rebuild_producers
from .names import TopicPartition
from .producer_entry import AppendOrigin, BatchMetadata
from .segment import LogSegment
from .segment_files.indexes import AbortedTxn
from .segments import PendingDeletions, remove

MAX_TIMESTAMP: Final = attrgetter("max_timestamp")


class UnifiedLog:
    """The log of one partition in a directory."""

    def __init__(
        self,
        disk: Disk,
        partition: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        folder: str | None = None,
        checkpoint: LogCheckpoint = NEW_LOG,
        deletions: PendingDeletions | None = None,
        on_roll: Callable[[TopicPartition, int], None] | None = None,
    ) -> None:
        self.partition = partition
        self._on_roll = on_roll
        self.folder = str(partition) if folder is None else folder
        self.config = config
        self.disk = disk
        self.deletions = PendingDeletions(disk) if deletions is None else deletions
        loaded = LogLoader(disk, self.folder, config, checkpoint, now_ms).load()
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.truncated_bytes = loaded.truncated_bytes
        self.high_watermark = loaded.log_start_offset
        self.last_flush_ms = now_ms

    # -- offsets

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed consumers read."""
        unstable = self.producers.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark within the log; return it."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.producers.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def start_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch at the log end, unless it is the latest."""
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, self.log_end_offset)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return where an epoch ends in this log."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def check_joined(self) -> None:
        """Check that each segment ends where the next begins. Raises CorruptFile.

        Not so where offsets were compacted away, also before they were replicated to here.
        """
        for segment, after in pairwise(self.segments):
            end = segment.next_offset
            if end < after.base_offset:
                raise missing(self.folder, end, after.base_offset)

    # -- writing

    def append(
        self,
        records: bytes,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        batches: list[Batch] | None = None,
    ) -> LogAppendInfo:
        """Append batches that have their offsets and leader epoch. Raises AppendRejected.

        batches: their headers, if the caller has read them.
        """
        if batches is None:
            batches = read_batches(records, origin)
        check_place(batches, len(records), self.log_end_offset, self.config.segment_bytes)
        written = self._check_producers(batches, origin)
        if written is not None:
            return LogAppendInfo(
                written.base_offset, written.last_offset, written.timestamp, written
            )
        latest = max(map(MAX_TIMESTAMP, batches))
        first, last = batches[0].base_offset, batches[-1].last_offset
        active = self._active_for(len(records), first, last, latest, now_ms)
        epoch = self.epochs.latest
        for batch in batches:
            if batch.partition_leader_epoch > epoch:
                epoch = batch.partition_leader_epoch
                self.epochs.assign(epoch, batch.base_offset)
        active.append(records, batches)
        self.log_end_offset = last + 1
        for batch in batches:
            completed = self.producers.update(batch)
            if completed is not None:
                active.complete(completed, self.producers.last_stable_offset(completed))
                self.producers.complete(completed)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return LogAppendInfo(first, last, latest)

    def _check_producers(self, batches: list[Batch], origin: AppendOrigin) -> BatchMetadata | None:
        """Return the batch that is sent again, if there is one. Raises AppendRejected."""
        for batch in batches:
            if batch.producer_id < 0:
                continue
            if origin is AppendOrigin.CLIENT:
                written = self.producers.find_duplicate(batch)
                if written is not None:
                    return written
            self.producers.check(batch, origin)
        return None

    def _active_for(self, size: int, first: int, last: int, latest: int, now_ms: int) -> LogSegment:
        """Return the segment that batches are appended to: a new one if the active one is full."""
        active = self.segments.active
        old = active.records.size and active.waited_ms(now_ms, latest) > self.config.segment_ms
        if old or not active.accepts(size, last, self.config):
            self.roll(now_ms, first)
            return self.segments.active
        return active

    def roll(self, now_ms: int, offset: int = 0) -> LogSegment:
        """Begin a segment at the log end (or at a later offset).

        What is before it is durable first: a crash must not leave the new name without the batches.
        Raises CorruptFile if the file of the segment before is not as long as what was written.
        """
        active = self.segments.active
        base = max(offset, self.log_end_offset)
        active.check_size()
        active.seal()
        active.flush()
        self.flush(now_ms)
        if active.base_offset == base:
            self.segments.discard(active)
        new = LogSegment.create(self.disk, self.folder, base, self.config, now_ms)
        self.segments.add(new)
        self.producers.map_end_offset = base
        self.producers.take_snapshot()
        if self._on_roll is not None:
            self._on_roll(self.partition, base)
        return new

    def flush(self, now_ms: int, up_to: int | None = None) -> None:
        """Make all batches durable, or those before an offset."""
        end = self.log_end_offset if up_to is None else up_to
        for segment in self.segments.between(self.recovery_point, end):
            segment.flush()
        self.recovery_point = max(self.recovery_point, end)
        self.last_flush_ms = now_ms

    @property
    def is_dirty(self) -> bool:
        """Whether there are batches that are not durable."""
        return self.recovery_point < self.log_end_offset

    def close(self, now_ms: int) -> None:
        """Flush everything and write a snapshot of the producers, for a clean shutdown."""
        self.segments.active.seal()
        self.segments.active.flush()
        self.flush(now_ms)
        self.producers.take_snapshot()

    # -- truncation

    def start_of_batch(self, offset: int) -> int:
        """Return the base offset of the batch with an offset; the offset if there is none."""
        segment = self.segments.floor(offset)
        stored = None if segment is None else segment.locate(offset)
        return offset if stored is None else min(offset, stored.batch.base_offset)

    def truncate(self, offset: int, now_ms: int) -> bool:
        """Remove the batches from the one with an offset on; return whether there were any.

        The checkpoint of recovery points must not be above the offset any more: see
        `LogManager.truncate`.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully(offset, now_ms)
            return True
        self.recovery_point = min(self.recovery_point, offset)
        later = [each for each in self.segments if each.base_offset > offset]
        if later:  # the last first, and durable before the cut: a crash must not leave a gap
            self._remove(list(reversed(later)), now_ms)
            self.disk.fsync_directory(self.folder)
        active = self.segments.active
        active.truncate(offset)
        active.flush()
        self.log_start_offset = min(self.log_start_offset, offset)
        self.log_end_offset = max(active.next_offset, self.log_start_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.producers.delete_outside(self.log_start_offset, self.log_end_offset)
        rebuild_producers(self.producers, self.segments, self.log_start_offset, self.log_end_offset)
        self.disk.fsync_directory(self.folder)  # snapshots of what was cut must not come back
        self.update_high_watermark(self.high_watermark)
        return True

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Remove everything; the log starts and ends at an offset."""
        self.recovery_point = min(self.recovery_point, offset)
        self._remove(list(reversed(list(self.segments))), now_ms)
        self.segments.add(LogSegment.create(self.disk, self.folder, offset, self.config, now_ms))
        self.epochs.clear()
        self.producers.truncate_fully(offset)
        self.disk.fsync_directory(self.folder)
        self.log_start_offset = self.log_end_offset = offset
        self.high_watermark = offset

    def delete_before(self, offset: int) -> None:
        """Move the log start offset; `delete_old_segments` deletes segments before it.

        The checkpoint of log start offsets must have it: see `LogManager.delete_records`.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self.high_watermark = max(self.high_watermark, offset)

    def remove_segments(self, segments: list[LogSegment], now_ms: int) -> None:
        """Delete the oldest segments; the log starts after them."""
        if segments and segments[-1] is self.segments.active:
            self.roll(now_ms)
        self._remove(segments, now_ms)
        self.delete_before(min(self.segments.first.base_offset, self.log_end_offset))

    def _remove(self, segments: list[LogSegment], now_ms: int) -> None:
        due_ms = now_ms + self.config.file_delete_delay_ms
        for segment in segments:
            self.segments.discard(segment)
            remove(self.disk, segment, self.deletions, due_ms)
        self.producers.delete_snapshots(each.base_offset for each in segments)

    # -- reading

    def read(
        self, offset: int, max_bytes: int, at_least_one: bool, up_to: int | None = None
    ) -> list[bytes]:
        """Return whole batches from the one with `offset` on, up to `max_bytes`.

        at_least_one: return the first batch even if it is larger. up_to: the offset at which a read
        ends (the high watermark, or the last stable offset); None is the log end. Raises
        OffsetOutOfRange.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)
        limit = self.log_end_offset if up_to is None else up_to
        if limit >= self.log_end_offset:
            room = self.config.segment_bytes if at_least_one else max_bytes
            last = self.segments.active.read_last(offset, room)
            if last:
                return [last]
        parts: list[bytes] = []
        room = max_bytes
        segment = self.segments.floor(offset)
        while segment is not None and segment.base_offset < limit and (room > 0 or not parts):
            position = segment.position_of(offset)
            if position is not None:
                stop = segment.locate(limit) if limit < self.log_end_offset else None
                end = segment.records.size if stop is None else stop.position
                data = segment.read(position, end, max(room, 0), at_least_one and not parts)
                parts += [data] if data else []
                room -= len(data)
                if position + len(data) < segment.records.size:
                    break
            segment = self.segments.higher(segment.base_offset)
        return parts

    def bytes_from(self, offset: int) -> int:
        """Return the bytes of the batches from the one that contains `offset` on."""
        total = 0
        for segment in self.segments.between(offset, self.log_end_offset):
            location = segment.locate(offset)
            total += 0 if location is None else segment.size - location.position
        return total

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTxn]:
        """List aborted transactions with batches in a range of offsets."""
        aborted: list[AbortedTxn] = []
        for segment in self.segments.between(start, self.log_end_offset):
            some, complete = segment.transaction_index.collect(start, end)
            aborted += some
            if complete:
                break
        return aborted
