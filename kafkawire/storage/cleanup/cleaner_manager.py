"""Chooses which logs are compacted, and up to where.

The log with the largest dirty part goes first, once that part is more than
`min.cleanable.dirty.ratio` of it, or older than `max.compaction.lag.ms`.

    clean ── first dirty offset ── cleanable ── first uncleanable offset ── active segment
    uncleanable: the active segment, what is not stable, what is younger than min.compaction.lag.ms
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..segment import LogSegment
from ..unified_log import UnifiedLog
from .cleaner import Cleaned, clean
from .offset_map import DEFAULT_CAPACITY


class LogToClean(NamedTuple):
    """A log and its dirty part. overdue: whether it is older than the maximal lag."""

    log: UnifiedLog
    first_dirty: int
    uncleanable: int
    cleanable_bytes: int
    total_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        """The dirty part of the log."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is compacted now."""
        due = self.overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio
        return due and self.cleanable_bytes > 0


def log_to_clean(log: UnifiedLog, last_clean: int | None, now_ms: int) -> LogToClean:
    """Find the dirty part of a log. last_clean: from the checkpoint."""
    first_dirty = log.log_start_offset if last_clean is None else last_clean
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    active = log.segments.active.base_offset
    closed = log.segments.between(first_dirty, active)
    limit = min(log.last_stable_offset, active)
    if log.config.min_compaction_lag_ms > 0:
        young = now_ms - log.config.min_compaction_lag_ms
        limit = min([limit, *(s.base_offset for s in closed if s.largest_timestamp > young)])
    limit = max(limit, first_dirty)
    after = log.segments.between(limit, active)
    uncleanable = after[0].base_offset if after else active
    dirty = log.segments.between(min(first_dirty, uncleanable), uncleanable)
    dirty_bytes = sum(segment.size for segment in dirty)
    clean_bytes = sum(segment.size for segment in log.segments if segment.base_offset < first_dirty)
    return LogToClean(
        log,
        first_dirty,
        uncleanable,
        dirty_bytes,
        dirty_bytes + clean_bytes,
        _overdue(log, closed, now_ms),
    )


def _overdue(log: UnifiedLog, closed: list[LogSegment], now_ms: int) -> bool:
    times = [segment.first_timestamp for segment in closed if segment.first_timestamp > 0]
    return min(times, default=now_ms) < now_ms - max(log.config.max_compaction_lag_ms, 0)


def filthiest(candidates: Iterable[LogToClean]) -> LogToClean | None:
    """Choose the next log to compact; None if none is due."""
    due = (each for each in candidates if each.is_due and each.log.config.compact)
    return max(due, key=lambda each: each.ratio, default=None)


def compact(chosen: LogToClean, now_ms: int, capacity: int = DEFAULT_CAPACITY) -> Cleaned:
    """Compact a log that was chosen."""
    return clean(chosen.log, chosen.first_dirty, chosen.uncleanable, now_ms, capacity)
