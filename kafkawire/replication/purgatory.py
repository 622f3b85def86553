"""Delayed operations as data, as Kafka's DelayedOperationPurgatory.

An operation completes once: when the last thing that it waits for happened, when its time is
over, or when the leader of its partition changed. Work grows with what is added and what is
reached, not with what still waits.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic, TypeVar

from ..metadata import TopicIdPartition

K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Hashable)

SLACK: Final = 64


Entry = tuple[float, int]
"""A place in a heap: a value, and a number in order of arrival, so waiters are never compared."""


class Thresholds(Generic[K, W]):
    """Who waits for a growing number to reach which value: a heap for each key.

    An entry that was discarded leaves its heap later; a heap has at most twice as many entries as
    wait, and SLACK.
    """

    def __init__(self) -> None:
        self._heaps: dict[K, list[Entry]] = {}
        self.live: Mapping[K, object] = self._heaps
        """What is waited for: a heap has at least one entry that was not discarded."""
        self._waiters: dict[int, tuple[K, W]] = {}
        self._stale: dict[K, int] = {}
        """How many entries of a heap were discarded."""
        self._count = 0
        self.work = 0
        """Entries that were looked at: tests hold it linear."""

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, key: K, value: float, waiter: W) -> int:
        """Let a waiter wait until `key` reaches `value`; return the number to discard it by."""
        self._count = number = self._count + 1
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = []
        heappush(heap, (value, number))
        self._waiters[number] = key, waiter
        return number

    def discard(self, number: int) -> None:
        """Forget a waiter, if it still waits."""
        waiter = self._waiters.pop(number, None)
        if waiter is None:
            return
        key = waiter[0]
        if len(self._heaps[key]) == 1:
            del self._heaps[key]  # it has waited alone
            if self._stale:
                self._stale.pop(key, None)
        else:
            self._stale[key] = self._stale.get(key, 0) + 1
            self._drop_stale(key)

    def take_reached(self, key: K, value: float, most: float = inf) -> list[W]:
        """Remove and return those whose threshold is at most `value`, the lowest first."""
        complete: list[W] = []
        heap = self._heaps.get(key)
        if heap is None:
            return complete
        while heap and heap[0][0] <= value and len(complete) < most:
            self.work += 1
            waiting = self._waiters.pop(heappop(heap)[1], None)
            if waiting is not None:
                complete.append(waiting[1])
            else:
                self._stale[key] -= 1
        if not heap:
            del self._heaps[key]
        elif self._stale:
            self._drop_stale(key)
        return complete

    def take_all(self, key: K) -> list[W]:
        """Remove and return all that wait for a key."""
        return self.take_reached(key, inf)

    def lowest(self, key: K) -> float | None:
        """Return the lowest threshold of a key."""
        heap = self._heaps.get(key)
        if heap is None:
            return None
        while heap[0][1] not in self._waiters:
            heappop(heap)
            self._stale[key] -= 1
        return heap[0][0]

    def _drop_stale(self, key: K) -> None:
        """Drop the heap of a key if nobody waits for it, or its stale entries if they are most."""
        heap, stale = self._heaps[key], self._stale.get(key, 0)
        if stale == len(heap):
            del self._heaps[key], self._stale[key]
        elif 2 * stale > len(heap) + SLACK:
            heap[:] = [each for each in heap if each[1] in self._waiters]
            heapify(heap)
            del self._stale[key]


TIME: Final = "time"


class Purgatory(Generic[W]):
    """Operations of one kind. Each waits for values of partitions, in a given measure."""

    def __init__(self) -> None:
        self._watched: Thresholds[tuple[TopicIdPartition, str], W] = Thresholds()
        self._times: Thresholds[str, W] = Thresholds()
        self.waiting: dict[W, int] = {}
        """Operation -> the number of its deadline; looked at after each request, as `watched`."""
        self._entries: dict[W, list[int]] = {}
        """Operation -> the numbers of what it waits for."""
        self.watched = self._watched.live
        """(partition, measure) of what is waited for."""

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
        self.waiting[operation] = self._times.add(TIME, deadline, operation)

    def watch(self, operation: W, key: TopicIdPartition, measure: str, value: float) -> None:
        """Return the operation from `reached` when the measure of a partition is `value`."""
        number = self._watched.add((key, measure), value, operation)
        self._entries.setdefault(operation, []).append(number)

    def unwatch(self, operation: W) -> None:
        """Forget what an operation waits for, except the time."""
        for number in self._entries.pop(operation, ()):
            self._watched.discard(number)

    def reached(self, key: TopicIdPartition, measure: str, value: float) -> list[W]:
        """Return operations of which a threshold was reached; they stay, without it."""
        return self._watched.take_reached((key, measure), value)

    def all_of(self, key: TopicIdPartition, measure: str) -> list[W]:
        """Return the operations that wait for a partition; they stay, without it."""
        return self._watched.take_all((key, measure))

    def remove(self, operation: W) -> bool:
        """Remove an operation; return whether it was there."""
        deadline = self.waiting.pop(operation, None)
        if deadline is None:
            return False
        self.unwatch(operation)
        self._times.discard(deadline)
        return True

    def take_expired(self, now: float, most: float = inf) -> list[W]:
        """Remove and return the operations whose time is over, so many at most."""
        expired = self._times.take_reached(TIME, now, most)
        for operation in expired:
            self.unwatch(operation)
            del self.waiting[operation]
        return expired

    def next_deadline(self) -> float:
        """Return the earliest deadline; infinity if no operation waits."""
        due = self._times.lowest(TIME)
        return inf if due is None else due
