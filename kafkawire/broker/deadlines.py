"""A priority queue of deadlines by key.

Law: one deadline per key; setting it again replaces it.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SLACK: Final = 64
"""Stale heap entries that are tolerated, beyond the number of deadlines, before compaction."""


class Deadlines(Generic[K]):
    """A dict of key -> time, with access to the earliest."""

    def __init__(self) -> None:
        self._when: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._when)

    def __contains__(self, key: object) -> bool:
        return key in self._when

    def set(self, key: K, when: float | None) -> None:
        """Set the deadline of `key`; None cancels it."""
        if when is None:
            self._when.pop(key, None)
            return
        if self._when.get(key) == when:
            return
        self._when[key] = when
        self._push(when, key)
        if len(self._heap) > 2 * len(self._when) + SLACK:
            self._compact()

    def cancel(self, key: K) -> None:
        """Cancel the deadline of a key, if any."""
        self._when.pop(key, None)

    def next(self) -> float | None:
        """Return the earliest deadline."""
        while self._heap:
            when, _, key = self._heap[0]
            if self._when.get(key) == when:
                return when
            heappop(self._heap)
        return None

    def pop_due(self, now: float) -> K | None:
        """Remove and return the earliest key that is due."""
        when = self.next()
        if when is None or when > now:
            return None
        key = heappop(self._heap)[2]
        del self._when[key]
        return key

    def _push(self, when: float, key: K) -> None:
        self._count += 1  # ties in insertion order; keys are never compared
        heappush(self._heap, (when, self._count, key))

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if self._when.get(entry[2]) == entry[0]]
        heapify(self._heap)
