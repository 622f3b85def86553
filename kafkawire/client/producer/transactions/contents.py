"""What a transaction consists of: partitions, groups, and offsets to commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from ..record_accumulator import TopicPartition
from .requests import AddOffsets, AddPartitions, CommitOffsets, OffsetsCall, Operation


class TransactionContents:
    """The contents of the present transaction.

    partitions, groups: those that its coordinator knows, by a request of their own or by a Produce.
    offsets: calls whose offsets are not yet committed, in order. started: whether the coordinator
    may know of the transaction.
    """

    def __init__(self) -> None:
        self.partitions: set[TopicPartition] = set()
        self.offsets: deque[OffsetsCall] = deque()
        self.started = False
        self._groups: set[str] = set()

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Note partitions that the coordinator adds, or has added."""
        self.partitions.update(partitions)
        self.started = True

    def add_group(self, group_id: str) -> None:
        """Note a group that the coordinator has added."""
        self._groups.add(group_id)
        self.started = True

    def next_addition(
        self, partitions: Collection[TopicPartition], implicit: bool
    ) -> Operation | None:
        """Return the next request that adds to the transaction; None if it has everything.

        partitions: those with records. implicit: Produce and TxnOffsetCommit add partitions and
        groups themselves (KIP-890).
        """
        new = frozenset(partitions) - self.partitions
        if new and not implicit:
            return AddPartitions(new)
        if not self.offsets:
            return None
        call = self.offsets[0]
        added = implicit or call.group.group_id in self._groups
        return CommitOffsets(call) if added else AddOffsets(call)

    def clear(self) -> None:
        """Begin anew, after the end of a transaction."""
        self.partitions.clear()
        self._groups.clear()
