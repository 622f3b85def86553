"""The invariants of a cluster, checked while a simulation runs.

what is acknowledged with acks=all, or was consumed, stays where it was, for good
one leader of a partition an epoch; of the quorum, too
the high watermark is on all in-sync replicas, and their logs agree up to it
committed metadata is the same on all nodes
an idempotent producer's records are there once, in order; offsets never regress
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkawire.metadata import TopicIdPartition
from kafkawire.records import RecordBatches
from kafkawire.replication import ReplicaLog

from .clients import values_of


class Violation(AssertionError):
    """An invariant does not hold."""


def stored(log: ReplicaLog, start: int, end: int) -> dict[int, bytes]:
    """Return the values of a log by offset."""
    if start >= end:
        return {}
    data = log.read(start, 1 << 40, end, at_least_one=True)
    return {offset: value for offset, value in values_of(data) if start <= offset < end}


class Checker:
    """What was promised and seen so far."""

    def __init__(self) -> None:
        self.promised: dict[TopicIdPartition, dict[int, bytes]] = {}
        self.leaders: dict[tuple[TopicIdPartition, int], int] = {}
        self.newest: dict[TopicIdPartition, int] = {}
        """Partition -> the newest epoch in which a broker led it."""
        self.quorum_leaders: dict[int, int] = {}
        self.deleted: dict[TopicIdPartition, int] = {}
        """Partition -> up to where records may have been deleted."""
        self._metadata: dict[int, bytes] = {}
        self._metadata_end = 0
        self._agreed: dict[tuple[TopicIdPartition, int, int], int] = {}

    # -- records

    def promise(self, key: TopicIdPartition, offset: int, value: bytes, why: str) -> None:
        """Note that a record is to stay where it is; nothing else may have been there."""
        before = self.promised.setdefault(key, {}).setdefault(offset, value)
        if before != value:
            raise Violation(f"{why} {value!r} at {offset} of {key[1]}, where {before!r} was")

    def complete(self, key: TopicIdPartition, log: ReplicaLog, who: str) -> None:
        """Check that a log has everything that was promised."""
        start = log.log_start_offset
        if start > self.deleted.get(key, 0):
            raise Violation(f"{who} starts at {start}, nobody deleted that much")
        has = stored(log, start, log.log_end_offset)
        for offset, value in self.promised.get(key, {}).items():
            if offset >= start and has.get(offset) != value:
                raise Violation(f"{who} lost {value!r} at {offset}, has {has.get(offset)!r}")

    def led(self, key: TopicIdPartition, epoch: int, broker: int) -> None:
        """Check that a new leader is the only one of its epoch."""
        other = self.leaders.setdefault((key, epoch), broker)
        if other != broker:
            raise Violation(f"brokers {other} and {broker} lead {key[1]} in epoch {epoch}")
        self.newest[key] = max(self.newest.get(key, -1), epoch)

    def leader(self, key: TopicIdPartition) -> int | None:
        """Return the broker that led last."""
        return self.leaders.get((key, self.newest.get(key, -1)))

    def agree(
        self, key: TopicIdPartition, leader: ReplicaLog, other: ReplicaLog, who: tuple[int, int]
    ) -> None:
        """Check that an in-sync replica has what is below the leader's high watermark.

        who: the broker, and its incarnation.
        """
        end = leader.high_watermark
        start = max(
            leader.log_start_offset, other.log_start_offset, self._agreed.get((key, *who), 0)
        )
        ours, theirs = stored(leader, start, end), stored(other, start, end)
        if ours != theirs:
            offset = min(one for one in ours | theirs if ours.get(one) != theirs.get(one))
            raise Violation(
                f"broker {who[0]} in the ISR has {theirs.get(offset)!r} at {offset} of {key[1]},"
                f" the leader {ours.get(offset)!r}; high watermark {end}"
            )
        self._agreed[key, *who] = end

    def once_in_order(self, values: Iterable[bytes], name: bytes, acknowledged: int) -> None:
        """Check the records of an idempotent producer: numbered from 0, each once."""
        found = [int(value[len(name) :]) for value in values if value.startswith(name)]
        if found != list(range(len(found))) or len(found) < acknowledged:
            raise Violation(f"producer {name!r}: {found}, acknowledged {acknowledged}")

    # -- the quorum

    def quorum_led(self, epoch: int, leader: int) -> None:
        """Check that all nodes know the same leader of an epoch."""
        other = self.quorum_leaders.setdefault(epoch, leader)
        if other != leader:
            raise Violation(f"nodes {other} and {leader} lead the quorum in epoch {epoch}")

    def metadata(self, node: int, data: bytes, end: int) -> None:
        """Compare committed batches of the metadata log with those of other nodes."""
        for batch in RecordBatches(data):
            if batch.last_offset >= end:
                break
            known = self._metadata.get(batch.base_offset)
            stored = bytes(batch.data[batch.start : batch.end])
            if known is None and batch.base_offset >= self._metadata_end:
                self._metadata[batch.base_offset] = stored
                self._metadata_end = batch.last_offset + 1
            elif known is not None and known != stored:
                raise Violation(f"node {node} has other metadata at {batch.base_offset}")
