"""Reads the log of a partition for share groups: batches, and those of aborted transactions.

Invariant: nothing is read that consumers of the isolation level do not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...configs.durations import EARLIEST, duration_seconds
from ...records import Batch, ControlType, RecordBatches, control_record
from ...replication import Partition
from ...replication.log.replica_log import AbortedTransaction, ReplicaLog
from .acquiring import Acquired, LogBatch
from .config import ShareConfig

OPEN: Final = -1
"""The start offset of a share partition that nobody has read."""


class Read(NamedTuple):
    """What was read. aborted: the batches of aborted transactions."""

    batches: list[Batch]
    aborted: list[LogBatch]

    @property
    def ranges(self) -> list[LogBatch]:
        """The offsets of the batches."""
        return [LogBatch(each.base_offset, each.last_offset) for each in self.batches]

    def records(self, acquired: Sequence[Acquired]) -> bytes:
        """Return the batches from the first to the last acquired record."""
        first, last = acquired[0].first, acquired[-1].last
        return b"".join(
            each.data[each.start : each.end]
            for each in self.batches
            if each.last_offset >= first and each.base_offset <= last
        )


def visible_end(log: ReplicaLog, read_committed: bool) -> int:
    """Return the offset up to which a group sees a log."""
    return log.last_stable_offset if read_committed else log.high_watermark


def read(replica: Partition, offset: int, most_bytes: int, read_committed: bool) -> Read:
    """Read whole batches from an offset on, one at least if there is any. Raises LogOffline."""
    log = replica.log
    end = visible_end(log, read_committed)
    data = log.read(offset, most_bytes, end, True) if offset < end else b""
    batches = list(RecordBatches(data))
    aborted: list[LogBatch] = []
    if read_committed and batches:
        after = batches[-1].last_offset + 1
        aborted = _aborted(batches, log.aborted_transactions(offset, after))
    return Read(batches, aborted)


def _aborted(
    batches: Sequence[Batch], transactions: Sequence[AbortedTransaction]
) -> list[LogBatch]:
    """Return the batches of aborted transactions, as consumers leave them out."""
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    aborted = []
    for batch in batches:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.control:
            if any(control_record(each).type == ControlType.ABORT for each in batch.records()):
                producers.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in producers:
            aborted.append(LogBatch(batch.base_offset, batch.last_offset))
    return aborted


def initial_offset(replica: Partition, config: ShareConfig, wall_ms: int) -> int:
    """Return where a group begins that has no start offset. Raises LogOffline."""
    log = replica.log
    end = visible_end(log, config.read_committed)
    if config.reset == EARLIEST:
        return log.log_start_offset
    duration = duration_seconds(config.reset)
    if duration is None:
        return end
    since = log.offset_for_timestamp(wall_ms - int(duration * 1000))
    return end if since is None else min(since.offset, end)
