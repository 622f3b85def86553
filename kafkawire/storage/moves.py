"""Moves logs between the log directories of a broker (KIP-113).

The log is the copy with the highest move generation. The future log is a prefix of the log,
offset by offset and epoch by epoch; it is durable before it takes the log's place.

    begin ─▶ copy ... ─▶ caught up: promote (-future loses its suffix) ─▶ the old log is deleted
    a crash after the promotion leaves two logs: `valid_copies` deletes the one that was left
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ..records import RecordBatches
from .cleanup.retention import delete_old_segments
from .directory_logs import DirectoryLogs, going_on
from .errors import AppendRejected, CorruptFile, KafkaStorageError, StorageError
from .names import TopicPartition
from .producer_entry import AppendOrigin
from .unified_log import UnifiedLog

MS_PER_SECOND: Final = 1000


class Move(NamedTuple):
    """A move of a partition's log from one log directory to another."""

    partition: TopicPartition
    source: DirectoryLogs
    target: DirectoryLogs
    new_uuid: Callable[[], bytes]

    @property
    def log(self) -> UnifiedLog:
        """The log until the move ends."""
        return self.source.logs[self.partition]

    @property
    def future(self) -> UnifiedLog:
        """The log that takes its place."""
        return self.target.futures[self.partition]

    @property
    def is_caught_up(self) -> bool:
        """Whether the future log has all batches."""
        return self.future.log_end_offset >= self.log.log_end_offset

    def begin(self, now_ms: int) -> None:
        """Create the future log."""
        topic_id = self.source.topic_ids.get(self.partition)
        unique = self.new_uuid().hex()
        self.target.create_future(self.partition, self.log.config, unique, topic_id, now_ms)

    def cancel(self, now_ms: int) -> None:
        """Delete the future log."""
        self.target.delete_future(self.partition, self.new_uuid, now_ms)

    def copy(self, max_bytes: int, now_ms: int) -> int:
        """Append the next batches to the future log; return their bytes."""
        log, future = self.log, self.future
        future.config = log.config
        if future.log_end_offset < log.log_start_offset:
            future.truncate_fully(log.log_start_offset, now_ms)
        offset = future.log_end_offset
        some = min(max_bytes, log.config.segment_bytes)
        copied = 0
        for data in log.read(offset, some, at_least_one=True):
            batches = list(RecordBatches(data))
            if batches[0].base_offset < future.log_end_offset:  # the log starts inside of a batch
                future.truncate_fully(batches[0].base_offset, now_ms)
            self._copy_epochs(batches[-1].last_offset)
            future.append(data, now_ms, AppendOrigin.REPLICATION)
            copied += len(data)
        self._copy_start(now_ms)
        future.update_high_watermark(log.high_watermark)
        return copied

    def _copy_epochs(self, last: int) -> None:
        """Begin the epochs up to an offset where they begin in the log, compacted or not."""
        future = self.future
        for entry in self.log.epochs.entries:
            if entry.start_offset <= last and entry.epoch > future.epochs.latest:
                future.epochs.assign(entry.epoch, entry.start_offset)

    def _copy_start(self, now_ms: int) -> None:
        start = self.log.log_start_offset
        if self.future.log_start_offset < start <= self.future.log_end_offset:
            self.target.checkpoints.write_start_offsets({self.partition: start})
            self.future.delete_before(start)
            delete_old_segments(self.future, now_ms)

    def swap(self, now_ms: int) -> UnifiedLog:
        """Let the future log take the place of the log; return it.

        If the target fails meanwhile, its copy may have the log's name: the log goes on with a
        higher generation.
        """
        log = self.log
        generation = self.source.generation(self.partition)
        try:
            self._copy_start(now_ms)
            cleaned = self.source.checkpoints.cleaned.get(self.partition)
            if cleaned is not None:
                self.target.checkpoints.write_cleaned(self.partition, cleaned)
            self.future.producers.adopt(log.producers)
            self.future.roll(now_ms)  # truncation leads back to this snapshot of them
            new = self.target.promote(self.partition, generation + 1, now_ms)
            new.start_epoch(log.epochs.latest)
            new.update_high_watermark(log.high_watermark)
        except KafkaStorageError:
            self.source.write_generation(self.partition, generation + 2)
            raise
        return new

    def delete_source(self, now_ms: int) -> None:
        """Delete the log that was replaced."""
        self.source.delete([self.partition], self.new_uuid, now_ms)

    def reconcile(self, now_ms: int) -> None:
        """Cut the future log where it differs from the log, after a start."""
        end = divergence(self.future, self.log)
        if end < self.future.log_end_offset:
            self.future.truncate(end, now_ms)


class Moves:
    """The moves of a broker.

    most: bytes that are copied of each log before others have their turn. bytes_per_second: of all
    moves together. failed: partitions whose last move ended with an error -> the error.
    """

    def __init__(self, new_uuid: Callable[[], bytes], most: int, bytes_per_second: int) -> None:
        self._new_uuid = new_uuid
        self._most = most
        self._bytes_per_second = bytes_per_second
        self._moves: dict[TopicPartition, Move] = {}
        self._due_ms = 0
        self.failed: dict[TopicPartition, str] = {}

    def __contains__(self, partition: object) -> bool:
        """Whether the log of a partition is being moved."""
        return partition in self._moves

    @property
    def targets(self) -> dict[TopicPartition, str]:
        """Partitions that are being moved -> the log directory that they are moved to."""
        return {partition: move.target.name for partition, move in self._moves.items()}

    @property
    def next_ms(self) -> int | None:
        """When to call `run`."""
        return self._due_ms if self._moves else None

    def begin(
        self, partition: TopicPartition, source: DirectoryLogs, target: DirectoryLogs, now_ms: int
    ) -> None:
        """Begin a move, unless it is the present one; a move to another directory ends."""
        present = self._moves.get(partition)
        if present is not None and present.target is target:
            return
        self.cancel(partition, now_ms)
        self.failed.pop(partition, None)
        if target is not source:
            move = Move(partition, source, target, self._new_uuid)
            move.begin(now_ms)
            if not self._moves:
                self._due_ms = now_ms
            self._moves[partition] = move

    def cancel(self, partition: TopicPartition, now_ms: int) -> None:
        """End a move, if there is one, without a swap."""
        move = self._moves.pop(partition, None)
        if move is not None and not move.target.offline:
            with going_on(move.target):
                move.cancel(now_ms)

    def truncate(self, partition: TopicPartition, now_ms: int) -> None:
        """Cut the future log of a log that was truncated."""
        move = self._moves.get(partition)
        if move is not None and not move.target.offline:
            with going_on(move.target):
                move.reconcile(now_ms)

    def resume(
        self,
        directories: Sequence[DirectoryLogs],
        sources: Mapping[TopicPartition, DirectoryLogs],
        now_ms: int,
        *,
        complete: bool,
    ) -> None:
        """Go on with moves that a stop has interrupted.

        sources: where the logs are. complete: whether that is all logs; a future log without a log
        is then deleted.
        """
        self._due_ms = now_ms
        for target in directories:
            for partition in list(target.futures):
                source = sources.get(partition)
                with going_on(target):
                    if source is not None and partition not in self._moves:
                        move = Move(partition, source, target, self._new_uuid)
                        move.reconcile(now_ms)
                        self._moves[partition] = move
                    elif source is not None or complete:
                        target.delete_future(partition, self._new_uuid, now_ms)

    def run(self, now_ms: int) -> Iterator[tuple[TopicPartition, DirectoryLogs, UnifiedLog]]:
        """Copy some of each log; yield the new logs of those that are complete, and where."""
        if self._due_ms > now_ms:
            return
        copied = 0
        for partition, move in list(self._moves.items()):
            if move.source.offline or move.target.offline:
                del self._moves[partition]
                continue
            with going_on(move.source, move.target):
                copied += self._copy(move, now_ms)
                if partition in self._moves and move.is_caught_up:
                    del self._moves[partition]
                    yield partition, move.target, move.swap(now_ms)
                    move.delete_source(now_ms)
        self._due_ms = now_ms + copied * MS_PER_SECOND // self._bytes_per_second

    def _copy(self, move: Move, now_ms: int) -> int:
        try:
            return move.copy(self._most, now_ms)
        except (AppendRejected, CorruptFile) as error:
            self.failed[move.partition] = str(error)
            self.cancel(move.partition, now_ms)
            return 0


def divergence(one: UnifiedLog, other: UnifiedLog) -> int:
    """Return the offset up to which two logs have the same epochs: the same batches."""
    end = min(one.log_end_offset, other.log_end_offset)
    start = max(one.log_start_offset, other.log_start_offset)
    starts = {entry.start_offset for log in (one, other) for entry in log.epochs.entries}
    for offset in sorted({start, *(each for each in starts if start < each < end)}):
        if one.epochs.epoch_of(offset) != other.epochs.epoch_of(offset):
            return offset
    return end


def valid_copies(
    directories: Sequence[DirectoryLogs], new_uuid: Callable[[], bytes], now_ms: int
) -> dict[TopicPartition, DirectoryLogs]:
    """Find the directory of each log; delete the copies that moves have left in others."""
    future: dict[TopicPartition, DirectoryLogs] = {}
    for directory in directories:
        for partition in directory.logs:
            before = future.get(partition)
            if before is None or _valid(partition, before, directory) is directory:
                future[partition] = directory
    for directory in directories:
        for partition in [each for each in directory.logs if future[each] is not directory]:
            with going_on(directory):
                directory.delete([partition], new_uuid, now_ms)
    return future


def _valid(partition: TopicPartition, one: DirectoryLogs, other: DirectoryLogs) -> DirectoryLogs:
    """Return which directory has the newer copy; StorageError if neither is newer."""
    generations = [each.generation(partition) for each in (one, other)]
    if generations[0] == generations[1]:
        raise StorageError(f"{partition} is in {one.name!r} and in {other.name!r}")
    return one if generations[0] > generations[1] else other
