"""A priority queue of deadlines by key.

One deadline per key; setting it again replaces it.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SLACK: Final = 64
"""Stale heap entries that are tolerated, beyond the number of deadlines, before compaction."""


class Deadlines(Generic[K]):
    """A dict of key -> time, with access to the earliest."""

    def __init__(self) -> None:
        self._entries: dict[K, tuple[float, int]] = {}
        self._keys: dict[int, K] = {}
        """Number of a heap entry that is not stale -> its key."""
        self._heap: list[tuple[float, int]] = []
        self.earliest = inf
        """The time of the first, which is not stale; it is looked at after each event."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def set(self, key: K, when: float | None) -> None:
        """Set the deadline of `key`; None cancels it."""
        entry = self._entries.get(key)
        if entry is not None:
            if entry[0] == when:
                return
            del self._entries[key], self._keys[entry[1]]
        if when is not None:
            self._count += 1  # ties in insertion order
            self._entries[key] = entry = when, self._count
            self._keys[self._count] = key
            heappush(self._heap, entry)
            if len(self._heap) > 2 * len(self._keys) + SLACK:
                self._compact()
        self._settle()

    def cancel(self, key: K) -> None:
        """Cancel the deadline of a key, if any."""
        self.set(key, None)

    def next(self) -> float | None:
        """Return the earliest deadline."""
        return None if self.earliest == inf else self.earliest

    def pop_due(self, now: float) -> K | None:
        """Remove and return the earliest key that is due."""
        if self.earliest > now or not self._heap:
            return None
        key = self._keys.pop(heappop(self._heap)[1])
        del self._entries[key]
        self._settle()
        return key

    def _settle(self) -> None:
        heap = self._heap
        while heap and heap[0][1] not in self._keys:
            heappop(heap)
        self.earliest = heap[0][0] if heap else inf

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if entry[1] in self._keys]
        heapify(self._heap)
