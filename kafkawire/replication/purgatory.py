"""Delayed operations as data, as Kafka's DelayedOperationPurgatory.

An operation completes once: when the last thing that it waits for happened, when its time is
over, or when the leader of its partition changed. Work grows with what is added and what is
reached, not with what still waits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from ..metadata import TopicIdPartition

K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Hashable)

SLACK: Final = 64


class Entry(NamedTuple):
    """A place in a heap. number: in order of arrival, so that waiters are never compared."""

    value: float
    number: int


class Thresholds(Generic[K, W]):
    """Who waits for a growing number to reach which value: a heap for each key.

    An entry that was discarded leaves its heap later; a heap has at most twice as many entries as
    wait, and SLACK.
    """

    def __init__(self) -> None:
        self._heaps: dict[K, list[Entry]] = {}
        self._waiters: dict[int, tuple[K, W]] = {}
        self.live: dict[K, int] = {}
        """How many wait for each key, without those that nobody waits for."""
        self._count = 0
        self.work = 0
        """Entries that were looked at: tests hold it linear."""

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, key: K, value: float, waiter: W) -> int:
        """Let a waiter wait until `key` reaches `value`; return the number to discard it by."""
        self._count += 1
        heappush(self._heaps.setdefault(key, []), Entry(value, self._count))
        self._waiters[self._count] = key, waiter
        self.live[key] = self.live.get(key, 0) + 1
        return self._count

    def discard(self, number: int) -> None:
        """Forget a waiter, if it still waits."""
        found = self._waiters.pop(number, None)
        if found is not None:
            self._left(found[0])

    def take_reached(self, key: K, value: float, most: float = inf) -> list[W]:
        """Remove and return those whose threshold is at most `value`, the lowest first."""
        found: list[W] = []
        heap = self._heaps.get(key)
        while heap and heap[0].value <= value and len(found) < most:
            self.work += 1
            waiting = self._waiters.pop(heappop(heap).number, None)
            if waiting is not None:
                found.append(waiting[1])
                self._left(key)
        return found

    def take_all(self, key: K) -> list[W]:
        """Remove and return all that wait for a key."""
        return self.take_reached(key, inf)

    def lowest(self, key: K) -> float | None:
        """Return the lowest threshold of a key."""
        heap = self._heaps.get(key)
        while heap and heap[0].number not in self._waiters:
            heappop(heap)
        return heap[0].value if heap else None

    def _left(self, key: K) -> None:
        left = self.live[key] - 1
        heap = self._heaps[key]
        if not left:
            del self._heaps[key], self.live[key]
            heap.clear()
            return
        self.live[key] = left
        if len(heap) > 2 * left + SLACK:
            heap[:] = [each for each in heap if each.number in self._waiters]
            heapify(heap)


TIME: Final = "time"


@dataclass(slots=True)
class _Waiting:
    """What is remembered of an operation: numbers of its entries."""

    entries: list[int] = field(default_factory=list)
    deadline: int = 0


class Purgatory(Generic[W]):
    """Operations of one kind. Each waits for values of partitions, in a given measure."""

    def __init__(self) -> None:
        self._watched: Thresholds[tuple[TopicIdPartition, str], W] = Thresholds()
        self._times: Thresholds[str, W] = Thresholds()
        self.waiting: dict[W, _Waiting] = {}
        """The operations. It is looked at after each request, which a method would slow down."""
        self.watched = self._watched.live
        """(partition, measure) -> how often it is waited for; looked at as often."""

    def __len__(self) -> int:
        return len(self.waiting)

    def __contains__(self, operation: W) -> bool:
        return operation in self.waiting

    @property
    def work(self) -> int:
        """How many entries were looked at."""
        return self._watched.work + self._times.work

    def add(self, operation: W, deadline: float) -> None:
        """Add an operation; `watch` says what it waits for."""
        self.waiting[operation] = _Waiting([], self._times.add(TIME, deadline, operation))

    def watch(self, operation: W, key: TopicIdPartition, measure: str, value: float) -> None:
        """Return the operation from `reached` when the measure of a partition is `value`."""
        number = self._watched.add((key, measure), value, operation)
        self.waiting[operation].entries.append(number)

    def unwatch(self, operation: W) -> None:
        """Forget what an operation waits for, except the time."""
        waiting = self.waiting[operation]
        if waiting.entries:
            for number in waiting.entries:
                self._watched.discard(number)
            waiting.entries.clear()

    def reached(self, key: TopicIdPartition, measure: str, value: float) -> list[W]:
        """Return operations of which a threshold was reached; they stay, without it."""
        return self._watched.take_reached((key, measure), value)

    def all_of(self, key: TopicIdPartition, measure: str) -> list[W]:
        """Return the operations that wait for a partition; they stay, without it."""
        return self._watched.take_all((key, measure))

    def remove(self, operation: W) -> bool:
        """Remove an operation; return whether it was there."""
        waiting = self.waiting.get(operation)
        if waiting is None:
            return False
        self.unwatch(operation)
        del self.waiting[operation]
        self._times.discard(waiting.deadline)
        return True

    def take_expired(self, now: float, most: float = inf) -> list[W]:
        """Remove and return the operations whose time is over, so many at most."""
        expired = self._times.take_reached(TIME, now, most)
        for operation in expired:
            self.unwatch(operation)
            del self.waiting[operation]
        return expired

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return self._times.lowest(TIME)
