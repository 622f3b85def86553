"""Proposes on which brokers the replicas of partitions could be (`kafkawire reassign`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from kafkawire.display import plural

from .files import Assignment, Partition


def proposed(
    current: Assignment, brokers: Iterable[int], racks: Mapping[int, str | None]
) -> dict[Partition, list[int]]:
    """Propose replicas on these brokers: as many, spread evenly, over racks; few of them move.

    A replica stays where it is unless its broker is not one of these, or has more than its share.
    Raises ValueError if there are too few brokers.
    """
    placement = Placement(current, brokers, racks)
    placement.keep(current)
    placement.fill(current)
    placement.level()
    placement.spread_leaders()
    return placement.replicas


class Placement:
    """The replicas of partitions, while they are placed."""

    def __init__(
        self, current: Assignment, brokers: Iterable[int], racks: Mapping[int, str | None]
    ) -> None:
        self._brokers = sorted(set(brokers))
        self._racks = racks
        self._load: Counter[int] = Counter()
        self.replicas: dict[Partition, list[int]] = {}
        for (topic, number), replicas in current.items():
            if len(replicas) > len(self._brokers):
                raise ValueError(
                    f"{topic}-{number} has {plural(len(replicas), 'replica')}, more than "
                    f"{plural(len(self._brokers), 'broker')}"
                )
        self._share = -(-sum(map(len, current.values())) // max(len(self._brokers), 1))

    def keep(self, current: Assignment) -> None:
        """Keep the replicas whose brokers remain and have not more than their share."""
        for partition, replicas in current.items():
            remaining = [broker for broker in replicas if broker in self._brokers]
            kept = [broker for broker in remaining if self._load[broker] < self._share]
            self._load.update(kept)
            self.replicas[partition] = kept

    def fill(self, current: Assignment) -> None:
        """Add replicas until each partition has as many as before."""
        for partition, replicas in self.replicas.items():
            while len(replicas) < len(current[partition]):
                free = [broker for broker in self._brokers if broker not in replicas]
                broker = self._best(free, replicas)
                replicas.append(broker)
                self._load[broker] += 1

    def level(self) -> None:
        """Move replicas from brokers with more than their share to those with less."""
        for replicas in self.replicas.values():
            for index, broker in enumerate(replicas):
                free = [
                    other
                    for other in self._brokers
                    if other not in replicas and self._load[other] < self._share
                ]
                if free and self._load[broker] > self._share:
                    better = self._best(free, [*replicas[:index], *replicas[index + 1 :]])
                    replicas[index] = better
                    self._load.subtract([broker])
                    self._load.update([better])

    def spread_leaders(self) -> None:
        """Put the replica first whose broker leads the fewest partitions so far."""
        leaders: Counter[int] = Counter()
        for replicas in self.replicas.values():
            leader = min(replicas, key=lambda broker: leaders[broker])
            replicas.remove(leader)
            replicas.insert(0, leader)
            leaders[leader] += 1

    def _best(self, free: Iterable[int], others: Iterable[int]) -> int:
        """Return the broker for a replica beside others: of another rack, with the least load."""
        used: Container[str | None] = {self._racks.get(broker) for broker in others} - {None}
        return min(
            free, key=lambda broker: (self._racks.get(broker) in used, self._load[broker], broker)
        )
