"""Fetches that wait for records, as data.

Law: a wait ends by records, by an error, by its time, or with its client; whichever is first takes
it out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ..request import Request
from .sessions import Context, Target

Key = tuple[str, int]


@dataclass(slots=True)
class DelayedFetch:
    """A parked Fetch. missing: bytes that it still waits for. targets: the partitions that may wake
    it. there: bytes that each of them counts for, so that a change of one is looked at alone.
    """

    request: Request
    context: Context
    missing: int
    targets: dict[Key, Target] = field(default_factory=dict)
    there: dict[Key, int] = field(default_factory=dict)

    def count(self, key: Key, available: int) -> bool:
        """Count what a partition has now; whether there is enough."""
        self.missing -= available - self.there.get(key, 0)
        self.there[key] = available
        return self.missing <= 0


class FetchPurgatory:
    """The parked fetches of one broker."""

    def __init__(self) -> None:
        self._delayed: dict[int, DelayedFetch] = {}
        self._by_partition: dict[tuple[str, int], dict[int, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._delayed)

    def watch(self, delayed: DelayedFetch) -> None:
        """Keep a Fetch."""
        self._delayed[delayed.request.reply_to] = delayed
        for key in delayed.targets:
            self._by_partition[key][delayed.request.reply_to] = None

    def take(self, reply_to: int) -> DelayedFetch | None:
        """Take a Fetch out."""
        delayed = self._delayed.pop(reply_to, None)
        for key in () if delayed is None else delayed.targets:
            others = self._by_partition[key]
            others.pop(reply_to, None)
            if not others:
                del self._by_partition[key]
        return delayed

    def forget(self, reply_to: int) -> None:
        """Drop a Fetch whose client is gone."""
        self.take(reply_to)

    def for_partition(self, key: tuple[str, int]) -> list[DelayedFetch]:
        """Give those that records of a partition may wake, the longest waiting first."""
        if key not in self._by_partition:
            return []
        return [self._delayed[reply_to] for reply_to in self._by_partition[key]]
