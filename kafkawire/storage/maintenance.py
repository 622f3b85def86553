"""What is done with logs at intervals: flushes, checkpoints, retention, compaction, expiration."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from .checkpoints import OffsetCheckpoints
from .cleanup.cleaner_manager import LogToClean, compact, filthiest, log_to_clean
from .cleanup.retention import delete_old_segments
from .config import LogManagerConfig, Task
from .directory_logs import DirectoryLogs
from .errors import CorruptFile
from .names import TopicPartition
from .unified_log import UnifiedLog


def _checkpoint(
    write: Callable[[OffsetCheckpoints], None],
) -> Callable[[DirectoryLogs, int], None]:
    return lambda directory, _now_ms: write(directory.checkpoints)


class Maintenance:
    """The tasks of a broker's logs, and when each is due.

    moving: partitions whose logs are being moved, which are not compacted. on_damage: called when
    a task meets damage in a log; retention and compaction pass by that log from then on.
    """

    def __init__(
        self,
        config: LogManagerConfig,
        moving: Container[TopicPartition],
        on_damage: Callable[[TopicPartition, CorruptFile], None],
    ) -> None:
        self._config = config
        self._moving = moving
        self._on_damage = on_damage
        self._due_ms: dict[Task, int] = {}
        self._damaged: set[TopicPartition] = set()
        self._tasks: Final[dict[Task, Callable[[DirectoryLogs, int], None]]] = {
            Task.FLUSH: self._flush,
            Task.CHECKPOINT_RECOVERY_POINTS: _checkpoint(OffsetCheckpoints.write_recovery_points),
            Task.CHECKPOINT_START_OFFSETS: _checkpoint(OffsetCheckpoints.write_start_offsets),
            Task.CHECKPOINT_HIGH_WATERMARKS: _checkpoint(OffsetCheckpoints.write_high_watermarks),
            Task.RETENTION: self._retain,
            Task.COMPACTION: self._compact,
            Task.EXPIRE_PRODUCERS: self._expire_producers,
        }

    def start(self, now_ms: int) -> None:
        """Begin the intervals."""
        self._due_ms = {task: now_ms + each for task, each in self._config.intervals.items()}

    @property
    def next_ms(self) -> int | None:
        """When the next task is due."""
        return min(self._due_ms.values(), default=None)

    def take_due(self, now_ms: int) -> list[Task]:
        """Return the tasks that are due, each of which begins its next interval."""
        due = [task for task, when in self._due_ms.items() if when <= now_ms]
        for task in due:
            self._due_ms[task] = now_ms + self._config.intervals[task]
        return due

    def run(self, tasks: Iterable[Task], directory: DirectoryLogs, now_ms: int) -> None:
        """Do tasks for the logs of a directory."""
        for task in tasks:
            self._tasks[task](directory, now_ms)

    @contextmanager
    def _undamaged(self, log: UnifiedLog) -> Iterator[None]:
        """Report that a log is damaged, and carry on with the others."""
        try:
            yield
        except CorruptFile as error:
            self._damaged.add(log.partition)
            self._on_damage(log.partition, error)

    def _intact(self, directory: DirectoryLogs) -> list[UnifiedLog]:
        """List the logs of a directory in which tasks met no damage."""
        return [log for key, log in directory.logs.items() if key not in self._damaged]

    def _flush(self, directory: DirectoryLogs, now_ms: int) -> None:
        for log in directory.logs.values():
            if log.is_dirty and now_ms - log.last_flush_ms >= log.config.flush_ms:
                log.flush(now_ms)

    def _retain(self, directory: DirectoryLogs, now_ms: int) -> None:
        for log in self._intact(directory):
            with self._undamaged(log):
                delete_old_segments(log, now_ms)

    def _compact(self, directory: DirectoryLogs, now_ms: int) -> None:
        while True:
            candidates: list[LogToClean] = []
            for log in self._intact(directory):
                if log.config.compact and log.partition not in self._moving:
                    with self._undamaged(log):
                        last_clean = directory.checkpoints.cleaned.get(log.partition)
                        candidates.append(log_to_clean(log, last_clean, now_ms))
            chosen = filthiest(candidates)
            if chosen is None:
                return
            cleaned = None
            with self._undamaged(chosen.log):
                cleaned = compact(chosen, now_ms)
            if cleaned is None:
                continue
            directory.checkpoints.write_cleaned(chosen.log.partition, cleaned.end_offset)
            if cleaned.end_offset <= chosen.first_dirty:
                return  # one batch has more keys than the map has room for

    def _expire_producers(self, directory: DirectoryLogs, now_ms: int) -> None:
        for log in directory.logs.values():
            log.producers.remove_expired(now_ms, self._config.producer_id_expiration_ms)
