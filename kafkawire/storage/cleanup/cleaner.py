"""Compacts a log: of each key, the record with the latest offset stays.

The active segment and what is not stable are never touched. A round is durable group by group:
a crash leaves of each group of segments the old or the new ones (`loader`).

    1 read the dirty part: the latest offset of each key, up to the map's capacity
    2 copy the segments before its end, in groups that fit into one, to .cleaned
    3 .cleaned -> .swap, old segments -> .deleted, .swap -> in place
"""

from __future__ import annotations

from typing import NamedTuple

from ...records import Batch
from ..names import CLEANED, SWAP
from ..segment import LogSegment
from ..segment_files.indexes import MAX_RELATIVE_OFFSET
from ..segments import remove
from ..unified_log import UnifiedLog
from .offset_map import DEFAULT_CAPACITY, OffsetMap
from .retained import Retention
from .transactions import CleanedTransactions


class Cleaned(NamedTuple):
    """A round of compaction. end_offset: where the dirty part begins now."""

    end_offset: int
    bytes_read: int
    bytes_written: int


def clean(
    log: UnifiedLog,
    first_dirty: int,
    uncleanable: int,
    now_ms: int,
    capacity: int = DEFAULT_CAPACITY,
) -> Cleaned:
    """Compact the segments before `uncleanable`, which begins a segment."""
    if first_dirty >= uncleanable:
        return Cleaned(first_dirty, 0, 0)
    offsets = OffsetMap(capacity)
    _build(log, first_dirty, uncleanable, offsets)
    end = offsets.latest_offset + 1
    retention = Retention(
        offsets,
        CleanedTransactions(),
        log.producers.last_records,
        uncleanable,
        now_ms,
        log.config.delete_retention_ms,
    )
    read = written = 0
    for group in groups(log, log.segments.between(0, end), uncleanable):
        read += sum(each.size for each in group)
        written += _clean_group(log, group, retention, now_ms)
    return Cleaned(end, read, written)


def _build(log: UnifiedLog, start: int, end: int, offsets: OffsetMap) -> None:
    """Read the latest offset of each key, up to the capacity of the map."""
    transactions = CleanedTransactions()
    transactions.add(log.aborted_transactions(start, end))
    dirty = log.segments.between(start, end)
    bounds = [*(each.base_offset for each in dirty[1:]), end]
    for segment, bound in zip(dirty, bounds, strict=True):
        for stored in segment.batches(segment.offset_index.lookup(start).position):
            batch = stored.batch
            discarded = transactions.can_discard(batch)
            if not batch.control and not discarded:
                for record in batch.records():
                    if record.key is None or record.offset < start:
                        continue
                    if not offsets.put(record.key, record.offset):
                        return
            if batch.last_offset >= start:
                offsets.latest_offset = batch.last_offset
        offsets.latest_offset = bound - 1


def groups(log: UnifiedLog, segments: list[LogSegment], uncleanable: int) -> list[list[LogSegment]]:
    """Group neighbours that fit into one segment and its indexes."""
    neighbours: list[list[LogSegment]] = []
    for index, segment in enumerate(segments):
        last = (segments[index + 1].base_offset if index + 1 < len(segments) else uncleanable) - 1
        if neighbours and _fits(log, [*neighbours[-1], segment], last):
            neighbours[-1].append(segment)
        else:
            neighbours.append([segment])
    return neighbours


def _fits(log: UnifiedLog, group: list[LogSegment], last: int) -> bool:
    bound = log.config.segment_index_bytes
    return (
        sum(each.size for each in group) <= log.config.segment_bytes
        and sum(each.offset_index.entries.bytes for each in group) <= bound
        and sum(each.time_index.entries.bytes for each in group) <= bound
        and (group[-1].size == 0 or last - group[0].base_offset <= MAX_RELATIVE_OFFSET)
    )


def _clean_group(
    log: UnifiedLog, group: list[LogSegment], retention: Retention, now_ms: int
) -> int:
    base = group[0].base_offset
    cleaned = LogSegment.create(log.disk, log.folder, base, log.config, now_ms, CLEANED)
    retention.transactions.index = cleaned.transaction_index
    for at, segment in enumerate(group):
        end = group[at + 1].base_offset if at + 1 < len(group) else segment.next_offset
        retention.transactions.add(log.aborted_transactions(segment.base_offset, end))
        for stored in segment.batches():
            data = retention.retain(stored.batch)
            if data:
                cleaned.append(data, [Batch(data, 0, len(data))])
    cleaned.seal()
    cleaned.flush()
    replace_segments(log, cleaned, group, now_ms)
    return cleaned.size


def replace_segments(log: UnifiedLog, new: LogSegment, old: list[LogSegment], now_ms: int) -> None:
    """Put a durable segment in the place of others."""
    for path in new.paths():
        log.disk.rename(path, path.removesuffix(CLEANED) + SWAP)
    log.disk.fsync_directory(log.folder)
    due_ms = now_ms + log.config.file_delete_delay_ms
    for segment in old:
        remove(log.disk, segment, log.deletions, due_ms)
        log.segments.discard(segment)
    log.producers.delete_snapshots(each.base_offset for each in old[1:])
    new.suffix = SWAP
    for path in new.paths():
        log.disk.rename(path, path.removesuffix(SWAP))
    log.disk.fsync_directory(log.folder)
    placed = LogSegment(log.disk, log.folder, new.base_offset, log.config, new.created_ms)
    log.segments.add(placed)
