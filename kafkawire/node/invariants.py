"""What holds in a cluster at any time, checked on logs and on what nodes report.

one leader of a partition an epoch; of the quorum, too
what is acknowledged with acks=all stays where it was
the logs of in-sync replicas agree below the high watermark
committed metadata is the same on all nodes
"""

from __future__ import annotations

from typing import NamedTuple

from ..metadata import TopicIdPartition
from ..records import RecordBatches
from ..replication import ReplicaLog


class Violation(AssertionError):
    """An invariant does not hold."""


class Replica(NamedTuple):
    """A replica of a partition: the broker, its incarnation, and the log."""

    broker: int
    incarnation: int
    log: ReplicaLog


def values(data: bytes | None) -> list[tuple[int, bytes]]:
    """List the values of the records in batches, by offset."""
    return [
        (record.offset, record.value or b"")
        for each in RecordBatches(data or b"")
        for record in each.records()
        if not each.control
    ]


def stored(log: ReplicaLog, start: int, end: int) -> dict[int, bytes]:
    """Return the values of a log by offset."""
    if start >= end:
        return {}
    data = log.read(start, 1 << 40, end, at_least_one=True)
    return {offset: value for offset, value in values(data) if start <= offset < end}


class Invariants:
    """What was seen of a cluster so far."""

    def __init__(self) -> None:
        self.leaders: dict[tuple[TopicIdPartition, int], int] = {}
        self.newest: dict[TopicIdPartition, int] = {}
        """Partition -> the newest epoch in which a broker led it."""
        self.quorum_leaders: dict[int, int] = {}
        self._metadata: dict[int, bytes] = {}
        self._metadata_end = 0
        self._agreed: dict[tuple[TopicIdPartition, int, int], int] = {}

    # -- partitions

    def led(self, key: TopicIdPartition, epoch: int, broker: int) -> None:
        """Check that a new leader is the only one of its epoch."""
        other = self.leaders.setdefault((key, epoch), broker)
        if other != broker:
            raise Violation(f"brokers {other} and {broker} lead {key[1]} in epoch {epoch}")
        self.newest[key] = max(self.newest.get(key, -1), epoch)

    def leader(self, key: TopicIdPartition) -> int | None:
        """Return the broker that led last."""
        return self.leaders.get((key, self.newest.get(key, -1)))

    def agree(self, key: TopicIdPartition, leader: ReplicaLog, other: Replica) -> None:
        """Check that an in-sync replica has what is below the leader's high watermark."""
        end = leader.high_watermark
        who = (key, other.broker, other.incarnation)
        start = max(leader.log_start_offset, other.log.log_start_offset, self._agreed.get(who, 0))
        ours, theirs = stored(leader, start, end), stored(other.log, start, end)
        if ours != theirs:
            offset = min(one for one in ours | theirs if ours.get(one) != theirs.get(one))
            raise Violation(
                f"broker {other.broker} in the ISR has {theirs.get(offset)!r} at {offset} of"
                f" {key[1]}, the leader {ours.get(offset)!r}; high watermark {end}"
            )
        self._agreed[who] = end

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
            before = self._metadata.get(batch.base_offset)
            encoded = bytes(batch.data[batch.start : batch.end])
            if before is None and batch.base_offset >= self._metadata_end:
                self._metadata[batch.base_offset] = encoded
                self._metadata_end = batch.last_offset + 1
            elif before is not None and before != encoded:
                raise Violation(f"node {node} has other metadata at {batch.base_offset}")
