"""The invariants of a replicated log, checked while a simulation runs.

acknowledged records, and those that a consumer saw, stay where they were, for good
an acknowledgement of acks=all means that min.insync.replicas had the record
one leader for each epoch, and its high watermark only grows
the in-sync replicas have what is below it
of a transaction a consumer with read_committed sees nothing unless it was committed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kafkawire.metadata import TopicIdPartition
from kafkawire.records import RecordBatches
from kafkawire.replication import ReplicaLog

Place = tuple[TopicIdPartition, int]


class CrashableLog(ReplicaLog, Protocol):
    """A log that loses what is at an offset and after it, down to what was flushed at most."""

    @property
    def flushed_offset(self) -> int: ...

    def flush(self) -> None: ...

    def crash(self, end_offset: int, high_watermark: int) -> None: ...


class Violation(AssertionError):
    """An invariant does not hold."""


def values(log: ReplicaLog, start: int, end: int) -> dict[int, bytes]:
    """Return the values of a log by offset."""
    if start >= end:
        return {}
    return dict(records(log.read(start, 1 << 40, end, at_least_one=True), start))


def at(log: ReplicaLog, offset: int) -> bytes | None:
    """Return the value at an offset."""
    data = log.read(offset, 0, log.log_end_offset, at_least_one=True)
    return dict(records(data, offset)).get(offset)


def records(data: bytes, start: int = 0) -> Iterable[tuple[int, bytes]]:
    """List offsets and values of batches, from an offset on; markers have an empty value."""
    for batch in RecordBatches(data):
        for record in batch.records():
            if record.offset >= start:
                yield record.offset, b"" if batch.control else record.value or b""


class Checker:
    """What was promised so far."""

    def __init__(self, min_isr: int) -> None:
        self.min_isr = min_isr
        self.promised: dict[Place, bytes] = {}
        self.leaders: dict[tuple[TopicIdPartition, int], int] = {}
        self.watermarks: dict[tuple[TopicIdPartition, int], int] = {}
        self.lost: dict[tuple[int, TopicIdPartition, int], bytes] = {}
        """Records that a broker lost in a crash, and so had before."""
        self.deleted: dict[TopicIdPartition, int] = {}
        self.outcomes: dict[int, str] = {}
        """Producer id -> open, committed or aborted."""

    def promise(self, key: TopicIdPartition, offset: int, value: bytes, why: str) -> None:
        """Note that a record was acknowledged or seen."""
        before = self.promised.setdefault((key, offset), value)
        if before != value:
            raise Violation(f"{why}: offset {offset} is {value!r}, was {before!r}")

    def acknowledged(
        self,
        key: TopicIdPartition,
        offset: int,
        value: bytes,
        logs: dict[int, ReplicaLog],
        min_isr: int,
    ) -> None:
        """Check that enough replicas have, or had, an acknowledged record."""
        holders = {
            broker
            for broker, log in logs.items()
            if offset < log.log_start_offset or at(log, offset) == value
        }
        holders |= {
            broker
            for (broker, one, place), lost in self.lost.items()
            if (one, place, lost) == (key, offset, value)
        }
        if len(holders) < min_isr:
            raise Violation(f"offset {offset} acknowledged, but only {sorted(holders)} have it")
        self.promise(key, offset, value, "acknowledged")

    def led(self, key: TopicIdPartition, epoch: int, broker: int) -> None:
        """Check that a new leader is the only one of its epoch."""
        other = self.leaders.setdefault((key, epoch), broker)
        if other != broker:
            raise Violation(f"brokers {other} and {broker} both lead epoch {epoch}")

    def complete(self, key: TopicIdPartition, log: ReplicaLog, who: str) -> None:
        """Check that a log has everything that was promised."""
        has = values(log, log.log_start_offset, log.log_end_offset)
        for (one, offset), value in self.promised.items():
            if one == key and offset >= log.log_start_offset and has.get(offset) != value:
                raise Violation(f"{who} lost offset {offset}: {value!r}, has {has.get(offset)!r}")
        if log.log_start_offset > self.deleted.get(key, 0):
            raise Violation(f"{who} starts at {log.log_start_offset}, nobody deleted that much")

    def watermark(self, key: TopicIdPartition, epoch: int, offset: int, end: int) -> None:
        """Check that the high watermark of an epoch's leader only grows, within its log."""
        before = self.watermarks.get((key, epoch), 0)
        if offset < before or offset > end:
            raise Violation(f"high watermark {offset} in epoch {epoch}, was {before}, end {end}")
        self.watermarks[key, epoch] = offset

    def agree(self, key: TopicIdPartition, leader: ReplicaLog, other: ReplicaLog, who: str) -> None:
        """Check that an in-sync replica has what is below the leader's high watermark."""
        start = max(leader.log_start_offset, other.log_start_offset)
        end = leader.high_watermark
        ours, theirs = values(leader, start, end), values(other, start, end)
        if ours != theirs:
            offset = min(one for one in ours | theirs if ours.get(one) != theirs.get(one))
            raise Violation(
                f"{who} differs below the high watermark {end} of {key.partition} at {offset}:"
                f" {theirs.get(offset)!r}, leader {ours.get(offset)!r}"
            )

    def committed(self, data: bytes, start: int, aborted: list[tuple[int, int]]) -> None:
        """Check what a consumer with read_committed gets: of ended transactions alone."""
        for batch in RecordBatches(data):
            if not batch.transactional or batch.control or batch.last_offset < start:
                continue
            dropped = any(
                producer == batch.producer_id and first <= batch.base_offset
                for producer, first in aborted
            )
            outcome = self.outcomes[batch.producer_id]
            if outcome != ("aborted" if dropped else "committed"):
                raise Violation(
                    f"read_committed saw offset {batch.base_offset} of a transaction that is"
                    f" {outcome}, {'' if dropped else 'not '}as aborted"
                )
