"""Deletes old segments: by log start offset, by size, by time.

The oldest segments go first, and none that is not replicated (up to the high watermark);
when all of them go, a new one begins at the log end.
"""

from __future__ import annotations

from collections.abc import Callable

from ..segment import LogSegment
from ..unified_log import UnifiedLog


def delete_old_segments(log: UnifiedLog, now_ms: int) -> int:
    """Delete what the configuration does not retain; return the number of segments."""
    count = _delete(log, now_ms, lambda segment: _ends_before_start(log, segment))
    if not log.config.delete:
        return count
    if log.config.retention_bytes >= 0:
        excess = log.size - log.config.retention_bytes

        def too_large(segment: LogSegment) -> bool:
            nonlocal excess
            if excess < segment.size:
                return False
            excess -= segment.size
            return True

        count += _delete(log, now_ms, too_large)
    if log.config.retention_ms >= 0:
        oldest = now_ms - log.config.retention_ms
        count += _delete(log, now_ms, lambda segment: segment.largest_timestamp < oldest)
    return count


def _ends_before_start(log: UnifiedLog, segment: LogSegment) -> bool:
    following = log.segments.higher(segment.base_offset)
    return following is not None and following.base_offset <= log.log_start_offset


def _delete(log: UnifiedLog, now_ms: int, old: Callable[[LogSegment], bool]) -> int:
    deletable: list[LogSegment] = []
    for segment in log.segments:
        following = log.segments.higher(segment.base_offset)
        end = log.log_end_offset if following is None else following.base_offset
        empty = following is None and segment.size == 0
        if log.high_watermark < end or empty or not old(segment):
            break
        deletable.append(segment)
    if deletable:
        log.remove_segments(deletable, now_ms)
    return len(deletable)
