"""Chooses the brokers of new partitions: striped over racks (KIP-36) and brokers.

A partition has no broker twice; its first replica is on an unfenced broker; it has two
replicas in one rack only when all racks have one; fenced brokers come last in their rack.

    racks a: 1 2, b: 3 4   factor 3:   1 3 2 | 4 2 3 | 2 4 1 | 3 1 4
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol


class RandomNumbers(Protocol):
    """Where random numbers come from: a `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop`, exclusive."""

    def shuffle(self, items: list[Any], /) -> None:
        """Shuffle a list in place."""


class UsableBroker(NamedTuple):
    """A registered broker that is not shutting down."""

    broker_id: int
    rack: str | None
    fenced: bool


class PlacementError(ValueError):
    """Why replicas cannot be placed."""


class _Ring:
    """Brokers of a rack in one state, each partition beginning one further than that before."""

    def __init__(self, brokers: list[int], rng: RandomNumbers) -> None:
        self.brokers = sorted(brokers)
        self.start = rng.randrange(len(brokers)) if brokers else 0
        self.taken = 0

    def rewind(self) -> None:
        self.taken = 0
        if self.brokers:
            self.start = (self.start + 1) % len(self.brokers)

    def next(self) -> int | None:
        if self.taken == len(self.brokers):
            return None
        self.taken += 1
        return self.brokers[(self.start + self.taken - 1) % len(self.brokers)]


class _Rack:
    def __init__(self, brokers: list[UsableBroker], rng: RandomNumbers) -> None:
        self.unfenced = _Ring([each.broker_id for each in brokers if not each.fenced], rng)
        self.fenced = _Ring([each.broker_id for each in brokers if each.fenced], rng)
        self.rings = (self.unfenced, self.fenced)

    def next(self) -> int | None:
        broker = self.unfenced.next()
        return self.fenced.next() if broker is None else broker


class StripedReplicaPlacer:
    """Places the partitions of one topic."""

    def __init__(self, brokers: Iterable[UsableBroker], rng: RandomNumbers) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._rng = rng
        self._racks = [_Rack(by_rack[name], rng) for name in names]
        self._all = sum(map(len, by_rack.values()))
        self._unfenced = sum(len(rack.unfenced.brokers) for rack in self._racks)
        self._first = rng.randrange(len(self._racks)) if self._racks else 0
        self._placed = 0

    def place(self, count: int, factor: int) -> Iterator[list[int]]:
        """Place partitions, one after the other. Raises PlacementError at once."""
        if factor <= 0:
            raise PlacementError(f"replication factor {factor} is not positive")
        if not self._unfenced:
            raise PlacementError("All brokers are currently fenced.")
        if factor > self._all:
            raise PlacementError(
                f"The target replication factor of {factor} cannot be reached because only "
                f"{self._all} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
        return (self._partition(factor) for _ in range(count))

    def _partition(self, factor: int) -> list[int]:
        if self._placed == self._unfenced and self._unfenced > 1:
            self._shuffle()
        for rack in self._racks:
            for ring in rack.rings:
                ring.rewind()
        self._first %= len(self._racks)
        leader_rack, leader = self._leader()
        replicas = [leader]
        index, skip = self._first, leader_rack
        while len(replicas) < factor:
            if index == skip:  # once: the rack of the leader has its replica
                skip = -1
            else:
                broker = self._racks[index].next()
                if broker is not None:
                    replicas.append(broker)
            index = (index + 1) % len(self._racks)
        self._first += 1
        self._placed += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        for step in range(len(self._racks)):
            index = (self._first + step) % len(self._racks)
            broker = self._racks[index].unfenced.next()
            if broker is not None:
                return index, broker
        raise AssertionError("checked by place")

    def _shuffle(self) -> None:
        """Break the pattern after a round, so that followers of one leader are many."""
        self._rng.shuffle(self._racks)
        for rack in self._racks:
            for ring in rack.rings:
                self._rng.shuffle(ring.brokers)
        self._placed = 0
