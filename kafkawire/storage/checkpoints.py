"""The offset checkpoints of a log directory: where its logs are durable, start, are compacted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from . import names
from .disks.log_directory import LogDirectory
from .formats import read_offset_checkpoint, write_offset_checkpoint
from .loader import LogCheckpoint
from .names import TopicPartition
from .unified_log import UnifiedLog

NO_OFFSETS: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


class LoadedCheckpoints(NamedTuple):
    """What the checkpoint files say when a broker starts. clean: after a clean shutdown."""

    recovery_points: Mapping[TopicPartition, int]
    start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    clean: bool

    def of(self, key: TopicPartition) -> LogCheckpoint:
        """Return what they say of one log."""
        return LogCheckpoint(
            self.recovery_points.get(key, 0), self.start_offsets.get(key, 0), self.clean
        )


class OffsetCheckpoints:
    """Writes the checkpoints of a directory.

    logs, futures: those of the directory; a partition is not in both. unloaded: what the
    checkpoints say of logs that could not be loaded. cleaned: up to where each log is compacted.
    retired: logs that are deleted soon, which the checkpoints have forgotten.
    """

    def __init__(
        self,
        disk: LogDirectory,
        logs: Mapping[TopicPartition, UnifiedLog],
        futures: Mapping[TopicPartition, UnifiedLog],
    ) -> None:
        self._disk = disk
        self._logs = logs
        self._futures = futures
        self.unloaded: dict[TopicPartition, LogCheckpoint] = {}
        self.cleaned: dict[TopicPartition, int] = {}
        self.retired: set[TopicPartition] = set()

    def load(self, *, clean: bool) -> LoadedCheckpoints:
        """Read the files."""
        self.cleaned = read_offset_checkpoint(self._disk, names.CLEANER_OFFSETS)
        return LoadedCheckpoints(
            read_offset_checkpoint(self._disk, names.RECOVERY_POINTS),
            read_offset_checkpoint(self._disk, names.LOG_START_OFFSETS),
            read_offset_checkpoint(self._disk, names.HIGH_WATERMARKS),
            clean,
        )

    def _all(self) -> dict[TopicPartition, UnifiedLog]:
        return {**self._futures, **self._lasting()}

    def _lasting(self) -> dict[TopicPartition, UnifiedLog]:
        return {key: log for key, log in self._logs.items() if key not in self.retired}

    def write_recovery_points(self) -> None:
        """Write up to where each log is durable."""
        points = {key: each.recovery_point for key, each in self.unloaded.items()}
        points |= {key: log.recovery_point for key, log in self._all().items()}
        write_offset_checkpoint(self._disk, names.RECOVERY_POINTS, points)

    def write_start_offsets(self, coming: Mapping[TopicPartition, int] = NO_OFFSETS) -> None:
        """Write where each log starts, if that is not where its first segment does.

        coming: log start offsets that are about to be set.
        """
        starts = {key: each.log_start_offset for key, each in self.unloaded.items()}
        for key, log in self._all().items():
            start = coming.get(key, log.log_start_offset)
            if start > log.segments.first.base_offset:
                starts[key] = start
        write_offset_checkpoint(self._disk, names.LOG_START_OFFSETS, starts)

    def write_high_watermarks(self) -> None:
        """Write the high watermark of each log."""
        watermarks = {key: log.high_watermark for key, log in self._lasting().items()}
        write_offset_checkpoint(self._disk, names.HIGH_WATERMARKS, watermarks)

    def write_all(self) -> None:
        """Write those three."""
        self.write_recovery_points()
        self.write_start_offsets()
        self.write_high_watermarks()

    def write_cleaned(self, key: TopicPartition, offset: int) -> None:
        """Write up to where a log is compacted."""
        self.cleaned[key] = offset
        self._write_cleaner_offsets()

    def forget_cleaned(self, *keys: TopicPartition) -> None:
        """Forget how far logs are compacted."""
        forgotten = [key for key in keys if self.cleaned.pop(key, None) is not None]
        if forgotten:
            self._write_cleaner_offsets()

    def _write_cleaner_offsets(self) -> None:
        write_offset_checkpoint(self._disk, names.CLEANER_OFFSETS, self.cleaned)
