"""Loads a log from its files and, after a crash, recovers it.

What was flushed is there afterwards; the log ends before the first batch that is incomplete or
invalid, and nothing after it is kept. Everything that batches say (indexes, epochs, producers)
is rebuilt from them, from the recovery point on. What is missing or damaged before the recovery
point was durable, so no crash explains it: loading raises CorruptFile and changes no batches.

    1 interrupted compaction: .cleaned and .deleted are deleted; .swap replaces what it covers
    2 segments are opened; recovery begins at the first with missing or corrupt indexes, or at the
      recovery point, unless the shutdown was clean
    3 segments from there are read and cut; those after a cut are deleted
    4 the log must begin and end where it did when it was durable
    5 producers: the latest snapshot, and the batches after it
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from .config import LogConfig
from .disks.disk import Disk, join
from .epochs import LeaderEpochFileCache
from .errors import CorruptFile
from .names import (
    CLEANED,
    DELETED,
    INDEXES,
    LOG,
    SNAPSHOT,
    SWAP,
    NumberedName,
    file_name,
    numbered,
)
from .producer_state import ProducerStateManager
from .segment import LogSegment
from .segments import LogSegments, PendingDeletions, remove


class LogCheckpoint(NamedTuple):
    """What a log directory knows of a log. clean_shutdown: whether the log was closed.

    verify: read all batches, those before the recovery point, too.
    """

    recovery_point: int = 0
    log_start_offset: int = 0
    clean_shutdown: bool = False
    verify: bool = False


NEW_LOG: Final = LogCheckpoint()


class Loaded(NamedTuple):
    """The parts of a loaded log. truncated_bytes: what recovery cut."""

    segments: LogSegments
    epochs: LeaderEpochFileCache
    producers: ProducerStateManager
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    truncated_bytes: int


def missing(folder: str, start: int, end: int) -> CorruptFile:
    """Return the error of a log without some offsets."""
    path = file_name(folder, start, LOG)
    return CorruptFile(path, f"offsets {start} to {end - 1} are missing from the log")


class LogLoader:
    """Loads one log."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: LogConfig,
        checkpoint: LogCheckpoint,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._recovery_point, self._log_start_offset = checkpoint[:2]
        self._clean, self._verify = checkpoint[2:]
        self._now_ms = now_ms
        self._segments = LogSegments()

    def load(self) -> Loaded:
        """Load the log."""
        self._finish_compaction()
        self._open_segments()
        epochs = LeaderEpochFileCache(self._disk, self._folder)
        producers = ProducerStateManager(self._disk, self._folder)
        truncated = self._recover(epochs, producers)
        self._check_durable(epochs)
        self._start_after_the_end(epochs, producers)
        if not len(self._segments):
            start = self._log_start_offset
            self._segments.add(
                LogSegment.create(self._disk, self._folder, start, self._config, self._now_ms)
            )
        end = max(self._segments.active.next_offset, self._log_start_offset)
        start = max(self._log_start_offset, self._segments.first.base_offset)
        epochs.truncate_from_end(end)
        epochs.truncate_from_start(start)
        producers.remove_stray_snapshots(self._segments.base_offsets)
        producers.delete_outside(start, end)
        rebuild_producers(producers, self._segments, start, end)
        if not self._clean:  # names that the process before made need not be durable yet
            self._disk.fsync_directory(self._folder)
        point = end if self._clean else min(self._recovery_point, end)
        return Loaded(self._segments, epochs, producers, start, end, point, truncated)

    # -- 1: what compaction and deletion left

    def _names(self) -> list[tuple[str, NumberedName]]:
        names = ((name, numbered(name)) for name in self._disk.list(self._folder))
        return [(name, parsed) for name, parsed in names if parsed is not None]

    def _delete(self, name: str) -> None:
        self._disk.delete(join(self._folder, name))

    def _finish_compaction(self) -> None:
        names = self._names()
        cleaned = [each.offset for _, each in names if each.state == CLEANED]
        changed = False
        for name, each in names:
            # a swap from the first .cleaned on is not complete
            incomplete = each.state == SWAP and cleaned and each.offset >= min(cleaned)
            if each.state in (CLEANED, DELETED) or incomplete:
                self._delete(name)
                changed = True
        swaps = [(name, each) for name, each in self._names() if each.state == SWAP]
        if swaps:
            self._replace_by(swaps)
            changed = True
        if changed:
            self._disk.fsync_directory(self._folder)

    def _replace_by(self, swaps: list[tuple[str, NumberedName]]) -> None:
        """Delete the segments that swap files cover, and rename these."""
        covered = [
            (each.offset, self._open(each.offset, SWAP).next_offset)
            for _, each in swaps
            if each.suffix == LOG
        ]
        for name, each in self._names():
            inside = any(start <= each.offset < max(end, start + 1) for start, end in covered)
            if inside and not each.state and each.suffix != SNAPSHOT:
                self._delete(name)
        for name, _ in swaps:
            path = join(self._folder, name)
            self._disk.rename(path, path.removesuffix(SWAP))

    # -- 2: segments

    def _open(self, base_offset: int, suffix: str = "") -> LogSegment:
        return LogSegment(self._disk, self._folder, base_offset, self._config, self._now_ms, suffix)

    def _open_segments(self) -> None:
        names = [(name, each) for name, each in self._names() if not each.state]
        bases = {each.offset for _, each in names if each.suffix == LOG}
        for name, each in names:
            if each.suffix in INDEXES and each.offset not in bases:
                self._delete(name)
        for base_offset in sorted(bases):
            self._segments.add(self._open(base_offset))

    def _check_durable(self, epochs: LeaderEpochFileCache) -> None:
        """Check that nothing durable is missing at the beginning and at the end."""
        durable = self._durable_end()
        segments = list(self._segments)
        if self._clean and segments and epochs.entries:
            first = segments[0].base_offset
            if epochs.entries[0].start_offset < first:
                self._missing(epochs.entries[0].start_offset, first)
        if durable:
            end = segments[-1].next_offset if segments else 0
            if end < durable:
                self._missing(end, durable)

    def _durable_end(self) -> int:
        """Return up to where the log was durable when its process ended."""
        if self._recovery_point <= self._log_start_offset:
            return 0
        return self._recovery_point

    def _missing(self, start: int, end: int) -> NoReturn:
        raise missing(self._folder, start, end)

    # -- 3: recovery

    def _recovery_start(self) -> int | None:
        """Return the first offset to recover; None for nothing."""
        if self._verify:
            return 0
        for segment in self._segments:
            if not segment.indexes_valid():
                return min(segment.base_offset, self._unflushed())
        return None if self._clean else self._recovery_point

    def _unflushed(self) -> int:
        last = self._segments.active.base_offset
        return last if self._clean else self._recovery_point

    def _recover(self, epochs: LeaderEpochFileCache, producers: ProducerStateManager) -> int:
        start = self._recovery_start() if len(self._segments) else None
        if start is None:
            return 0
        floor = self._segments.floor(start)
        first = self._segments.first.base_offset if floor is None else floor.base_offset
        unflushed = [each for each in self._segments if each.base_offset >= first]
        rebuild_producers(producers, self._segments, self._log_start_offset, first)
        end = first
        for at, segment in enumerate(unflushed):
            if segment.base_offset < end:  # of before a truncation
                return self._drop(unflushed[at:])
            if segment.base_offset in producers.snapshots:
                # compaction may have removed what the batches before it said
                rebuild_producers(
                    producers, self._segments, self._log_start_offset, segment.base_offset
                )
            producers.map_end_offset = max(producers.map_end_offset, segment.base_offset)
            producers.take_snapshot()
            removed = segment.recover(producers, epochs, self._durable_end())
            segment.flush()
            end = segment.next_offset
            if removed:
                return removed + self._drop(unflushed[at + 1 :])
        return 0

    def _drop(self, segments: list[LogSegment]) -> int:
        """Delete segments after a cut, the last first: what is left has no gap."""
        removed = 0
        for segment in reversed(segments):
            removed += segment.size
            self._segments.discard(segment)
            remove(self._disk, segment, PendingDeletions(self._disk), None)
        self._disk.fsync_directory(self._folder)
        return removed

    def _start_after_the_end(
        self, epochs: LeaderEpochFileCache, producers: ProducerStateManager
    ) -> None:
        """Delete all segments if the log would end before it starts."""
        if not len(self._segments) or self._segments.active.next_offset >= self._log_start_offset:
            return
        if self._segments.active.base_offset <= self._log_start_offset and (
            self._segments.active.size == 0
        ):
            return
        self._drop(list(self._segments))
        epochs.clear()
        producers.truncate_fully(self._log_start_offset)


def rebuild_producers(
    producers: ProducerStateManager, segments: LogSegments, start: int, end: int
) -> None:
    """Load the latest snapshot up to `end` and add the batches after it."""
    producers.load(start, end)
    for segment in segments.between(producers.map_end_offset, end):
        position = segment.offset_index.lookup(max(producers.map_end_offset, start)).position
        for stored in segment.batches(position):
            batch = stored.batch
            if batch.base_offset >= end:
                break
            if batch.last_offset >= producers.map_end_offset:
                completed = producers.update(batch)
                if completed is not None:
                    producers.complete(completed)
    producers.map_end_offset = max(end, producers.map_end_offset)
