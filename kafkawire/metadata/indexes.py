"""Finds partitions by the brokers, directories and states that concern them.

An index holds exactly what the partitions say; a change of one partition costs its replicas,
never the number of partitions. Order is that of insertion, so that equal histories give equal
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from .registrations import NO_LEADER, PartitionRegistration, is_reserved

K = TypeVar("K")


class TopicIdPartition(NamedTuple):
    """A partition by its topic's id."""

    topic_id: bytes
    partition: int


class Index(Generic[K]):
    """Key -> the partitions that have it."""

    __slots__ = ("_partitions",)

    def __init__(self) -> None:
        self._partitions: dict[K, dict[TopicIdPartition, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def of(self, key: K) -> list[TopicIdPartition]:
        """List the partitions of a key: a copy, as the index changes with their changes."""
        return list(self._partitions.get(key, ()))

    def has(self, key: K) -> bool:
        """Return whether there is a partition."""
        return key in self._partitions

    def __iter__(self) -> Iterator[K]:
        return iter(self._partitions)

    def update(self, at: TopicIdPartition, old: Iterable[K], new: Iterable[K]) -> None:
        """Move a partition from its old keys to its new ones."""
        old, new = dict.fromkeys(old), dict.fromkeys(new)
        for key in old:
            if key not in new:
                partitions = self._partitions[key]
                del partitions[at]
                if not partitions:
                    del self._partitions[key]
        for key in new:
            if key not in old:
                self._partitions.setdefault(key, {})[at] = None

    def remove(self, at: TopicIdPartition, keys: Iterable[K]) -> None:
        """Remove a partition from all of its keys."""
        for key in keys:
            partitions = self._partitions.get(key)
            if partitions is not None:
                partitions.pop(at, None)
                if not partitions:
                    del self._partitions[key]

    def copy(self) -> Index[K]:
        index: Index[K] = Index()
        if self._partitions:
            index._partitions = {key: dict(each) for key, each in self._partitions.items()}
        return index


@dataclass(slots=True)
class PartitionIndexes:
    """The indexes of an image.

    count: the number of partitions.
    isr, elr: broker -> partitions with it there. leaders: broker -> those that it leads, NO_LEADER
    -> those without a leader. imbalanced: True -> those that another leads than the preferred
    leader. reassigning: topic id -> those with replicas to add or to remove.
    """

    count: int = 0
    replicas: Index[int] = field(default_factory=Index)
    isr: Index[int] = field(default_factory=Index)
    elr: Index[int] = field(default_factory=Index)
    leaders: Index[int] = field(default_factory=Index)
    directories: Index[bytes] = field(default_factory=Index)
    imbalanced: Index[bool] = field(default_factory=Index)
    reassigning: Index[bytes] = field(default_factory=Index)

    def update(
        self,
        at: TopicIdPartition,
        old: PartitionRegistration | None,
        new: PartitionRegistration,
    ) -> None:
        """Take in a change of a partition; None for one that did not exist."""
        self.count += old is None
        self.replicas.update(at, old.replicas if old else (), new.replicas)
        self.isr.update(at, old.isr if old else (), new.isr)
        self.elr.update(at, old.elr if old else (), new.elr)
        self.leaders.update(at, (old.leader,) if old else (), (new.leader,))
        self.directories.update(at, _directories(old), _directories(new))
        self.imbalanced.update(at, _imbalance(old), _imbalance(new))
        self.reassigning.update(at, _reassignment(at, old), _reassignment(at, new))

    def remove(self, at: TopicIdPartition, old: PartitionRegistration) -> None:
        """Take in that a partition is removed: a topic may have 10,000 of them."""
        self.count -= 1
        self.replicas.remove(at, old.replicas)
        self.isr.remove(at, old.isr)
        self.elr.remove(at, old.elr)
        self.leaders.remove(at, (old.leader,))
        self.directories.remove(at, old.directories)
        self.imbalanced.remove(at, (True,))
        self.reassigning.remove(at, (at.topic_id,))

    def copy(self) -> PartitionIndexes:
        return PartitionIndexes(
            self.count,
            self.replicas.copy(),
            self.isr.copy(),
            self.elr.copy(),
            self.leaders.copy(),
            self.directories.copy(),
            self.imbalanced.copy(),
            self.reassigning.copy(),
        )


def _directories(partition: PartitionRegistration | None) -> list[bytes]:
    return [each for each in partition.directories if not is_reserved(each)] if partition else []


def _imbalance(partition: PartitionRegistration | None) -> tuple[bool, ...]:
    if partition is None or partition.leader in (NO_LEADER, partition.replicas[0]):
        return ()
    return (True,)


def _reassignment(at: TopicIdPartition, partition: PartitionRegistration | None) -> list[bytes]:
    return [at[0]] if partition is not None and partition.is_reassigning else []
