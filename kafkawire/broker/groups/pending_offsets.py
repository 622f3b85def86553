"""Offsets that transactions have committed, until the transactions end (KIP-98, KIP-447).

Law: the marker in the partition of the group decides: the offsets take the place of earlier ones,
or are forgotten. A commit or a deletion that is after them in the log takes their place at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .offsets import Committed, TopicPartition

Group = dict[TopicPartition, Committed]


class PendingOffsets:
    """The pending offsets of one partition's groups, by the producers of their transactions."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, Group]] = {}
        self._by_group: dict[str, dict[TopicPartition, set[int]]] = {}

    def add(
        self, producer_id: int, group_id: str, given: Mapping[TopicPartition, Committed]
    ) -> None:
        """Add offsets of a transaction."""
        groups = self._by_producer.setdefault(producer_id, {})
        groups.setdefault(group_id, {}).update(given)
        producers = self._by_group.setdefault(group_id, {})
        for each in given:
            producers.setdefault(each, set()).add(producer_id)

    def of(self, group_id: str) -> Iterable[TopicPartition]:
        """Return the partitions of a group whose offsets are pending."""
        return self._by_group.get(group_id, ())

    def end(self, producer_id: int) -> dict[str, Group]:
        """Return the offsets of a transaction that ends, and forget them."""
        groups = self._by_producer.pop(producer_id, {})
        for group_id, given in groups.items():
            self._forget(group_id, given, {producer_id})
        return groups

    def supersede(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget the pending offsets of partitions: they have later ones, or none."""
        known = self._by_group.get(group_id)
        for each in list(partitions) if known else ():
            for producer_id in list(self._by_group.get(group_id, {}).get(each, ())):
                self._by_producer[producer_id][group_id].pop(each, None)
                self._forget(group_id, [each], {producer_id})

    def _forget(
        self, group_id: str, partitions: Iterable[TopicPartition], producers: set[int]
    ) -> None:
        known = self._by_group[group_id]
        for each in partitions:
            known[each] -= producers
            if not known[each]:
                del known[each]
        if not known:
            del self._by_group[group_id]
