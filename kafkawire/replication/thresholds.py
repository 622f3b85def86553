"""Who waits for a growing number to reach which value: heaps by key.

Law: work grows with what is added and what is reached, not with what still waits. An entry that was
discarded leaves its heap later; a heap has at most twice as many entries as wait, and `SLACK`.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Hashable)

SLACK: Final = 64


class Entry(NamedTuple):
    """A place in a heap. number: in order of arrival, so that waiters are never compared."""

    value: float
    number: int


class Thresholds(Generic[K, W]):
    """Waiters by key and threshold."""

    def __init__(self) -> None:
        self._heaps: dict[K, list[Entry]] = {}
        self._waiters: dict[int, tuple[K, W]] = {}
        self._live: dict[K, int] = {}
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
        self._live[key] = self._live.get(key, 0) + 1
        return self._count

    def discard(self, number: int) -> None:
        """Forget a waiter, if it still waits."""
        found = self._waiters.pop(number, None)
        if found is not None:
            self._left(found[0])

    def take_reached(self, key: K, value: float) -> list[W]:
        """Remove and return those whose threshold is at most `value`, the lowest first."""
        found: list[W] = []
        heap = self._heaps.get(key)
        while heap and heap[0].value <= value:
            self.work += 1
            waiting = self._waiters.pop(heappop(heap).number, None)
            if waiting is not None:
                found.append(waiting[1])
                self._left(key)
        return found

    def take_all(self, key: K) -> list[W]:
        """Remove and return all that wait for a key."""
        return self.take_reached(key, float("inf"))

    def lowest(self, key: K) -> float | None:
        """Return the lowest threshold of a key."""
        heap = self._heaps.get(key)
        while heap and heap[0].number not in self._waiters:
            heappop(heap)
        return heap[0].value if heap else None

    def _left(self, key: K) -> None:
        self._live[key] -= 1
        heap = self._heaps[key]
        if not self._live[key]:
            del self._heaps[key], self._live[key]
            heap.clear()
        elif len(heap) > 2 * self._live[key] + SLACK:
            heap[:] = [each for each in heap if each.number in self._waiters]
            heapify(heap)
