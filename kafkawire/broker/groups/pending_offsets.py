"""Offsets that transactions have committed, until the transactions end (KIP-98, KIP-447).

The marker in the partition of the group decides: the offsets take the place of earlier ones,
or are forgotten. A commit or a deletion that is after them in the log takes their place at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .offsets import Committed, TopicPartition

Group = dict[TopicPartition, Committed]


class PendingOffsets:
    """The pending offsets of one partition's groups, by the producers of their transactions.

    count: how many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._by_producer: dict[int, dict[str, Group]] = {}
        self._producers: dict[str, dict[TopicPartition, set[int]]] = {}
        """Group -> partition -> the producers that have a pending offset for it."""

    def add(
        self, producer_id: int, group_id: str, committed: Mapping[TopicPartition, Committed]
    ) -> None:
        """Add offsets of a transaction."""
        of_producer = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        self.count += sum(each not in of_producer for each in committed)
        of_producer.update(committed)
        producers = self._producers.setdefault(group_id, {})
        for each in committed:
            producers.setdefault(each, set()).add(producer_id)

    def of(self, group_id: str) -> Iterable[TopicPartition]:
        """Return the partitions of a group whose offsets are pending."""
        return self._producers.get(group_id, ())

    def end(self, producer_id: int) -> dict[str, Group]:
        """Return the offsets of a transaction that ends, and forget them."""
        groups = self._by_producer.pop(producer_id, {})
        for group_id, pending in groups.items():
            for each in pending:
                self._forget(group_id, each, producer_id)
        return groups

    def supersede(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget the pending offsets of partitions: they have later ones, or none."""
        for each in list(partitions) if group_id in self._producers else ():
            for producer_id in list(self._producers.get(group_id, {}).get(each, ())):
                del self._by_producer[producer_id][group_id][each]
                self._forget(group_id, each, producer_id)

    def _forget(self, group_id: str, partition: TopicPartition, producer_id: int) -> None:
        self.count -= 1
        producers = self._producers[group_id]
        producers[partition].discard(producer_id)
        if not producers[partition]:
            del producers[partition]
        if not producers:
            del self._producers[group_id]
