"""The invariants of a cluster, checked while a simulation runs.

those of `kafkawire.node.invariants`; and what was consumed stays where it was, for good
an idempotent producer's records are there once, in order; offsets never regress
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import Invariants, Violation, stored
from kafkawire.replication import ReplicaLog


class Checker(Invariants):
    """What was promised and seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.promised: dict[TopicIdPartition, dict[int, bytes]] = {}
        self.deleted: dict[TopicIdPartition, int] = {}
        """Partition -> up to where records may have been deleted."""

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

    def once_in_order(self, values: Iterable[bytes], name: bytes, acknowledged: int) -> None:
        """Check the records of an idempotent producer: numbered from 0, each once."""
        found = [int(value[len(name) :]) for value in values if value.startswith(name)]
        if found != list(range(len(found))) or len(found) < acknowledged:
            raise Violation(f"producer {name!r}: {found}, acknowledged {acknowledged}")
