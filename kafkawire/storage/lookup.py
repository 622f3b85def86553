"""Looks up offsets by timestamp in a log, for ListOffsets.

A timestamp finds the first record from the log start on that is not earlier; the time index
leads to a batch, and only batches that can have the record are read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..records.record import NO_TIMESTAMP
from .segment import LogSegment
from .segment_files.file_records import StoredBatch
from .unified_log import UnifiedLog

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
"""Special timestamps of ListOffsets; those of tiered storage find nothing."""


class FoundOffset(NamedTuple):
    """An offset with its timestamp and leader epoch; -1 for none."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_offset(log: UnifiedLog, timestamp: int, end: int | None = None) -> FoundOffset | None:
    """Look up a timestamp; None if no record is that late.

    end: the offset that is the latest for the caller (high watermark, last stable offset); None is
        the log end.
    """
    last = log.log_end_offset if end is None else end
    if timestamp == LATEST:
        return FoundOffset(last, NO_TIMESTAMP, log.epochs.latest)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return FoundOffset(start, NO_TIMESTAMP, log.epochs.epoch_of(start))
    if timestamp == MAX_TIMESTAMP:
        timestamp = _largest_timestamp(log)
        if timestamp < 0:
            return None
    if timestamp < 0:
        return None
    segment_found = _first_from(log, timestamp)
    return None if segment_found is None or segment_found.offset >= last else segment_found


def _first_from(log: UnifiedLog, timestamp: int) -> FoundOffset | None:
    for segment in log.segments:
        if segment.max_timestamp.timestamp < timestamp:
            continue
        start = segment.time_index.lookup(timestamp).offset
        position = segment.offset_index.lookup(max(start, log.log_start_offset)).position
        for header in segment.headers(position):
            if header.batch.max_timestamp < timestamp:
                continue
            for record in _whole(segment, header).batch.records():
                if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                    epoch = log.epochs.epoch_of(record.offset)
                    return FoundOffset(record.offset, record.timestamp, epoch)
    return None


def _whole(segment: LogSegment, header: StoredBatch) -> StoredBatch:
    return next(segment.batches(header.position))


def _largest_timestamp(log: UnifiedLog) -> int:
    """Return the largest timestamp of batches from the log start on."""
    largest = NO_TIMESTAMP
    for segment in log.segments:
        if segment.base_offset >= log.log_start_offset:
            largest = max(largest, segment.max_timestamp.timestamp)
            continue
        position = segment.offset_index.lookup(log.log_start_offset).position
        for header in segment.headers(position):
            if header.batch.last_offset >= log.log_start_offset:
                largest = max(largest, header.batch.max_timestamp)
    return largest
