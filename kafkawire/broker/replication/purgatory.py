"""The purgatory of delayed fetches.

Law: a delayed fetch completes by records, by an error, at its deadline or with its connection; the
first of these removes it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ..request import Request
from .sessions import FetchContext, Target

Key = tuple[str, int]


@dataclass(slots=True)
class DelayedFetch:
    """A Fetch that waits for records.

    missing: bytes that it still waits for. targets: its partitions. available: bytes counted for
    each, so that a change of one is evaluated alone.
    """

    request: Request
    context: FetchContext
    missing: int
    targets: dict[Key, Target] = field(default_factory=dict)
    available: dict[Key, int] = field(default_factory=dict)

    def count(self, key: Key, available: int) -> bool:
        """Update the available bytes of a partition; return whether there are enough in all."""
        self.missing -= available - self.available.get(key, 0)
        self.available[key] = available
        return self.missing <= 0


class FetchPurgatory:
    """The delayed fetches of one broker."""

    def __init__(self) -> None:
        self._delayed: dict[int, DelayedFetch] = {}
        self._by_partition: dict[tuple[str, int], dict[int, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._delayed)

    def watch(self, delayed: DelayedFetch) -> None:
        """Add a delayed fetch."""
        self._delayed[delayed.request.reply_to] = delayed
        for key in delayed.targets:
            self._by_partition[key][delayed.request.reply_to] = None

    def take(self, reply_to: int) -> DelayedFetch | None:
        """Remove and return a delayed fetch, if it is there."""
        delayed = self._delayed.pop(reply_to, None)
        for key in () if delayed is None else delayed.targets:
            others = self._by_partition[key]
            others.pop(reply_to, None)
            if not others:
                del self._by_partition[key]
        return delayed

    def for_partition(self, key: tuple[str, int]) -> list[DelayedFetch]:
        """Return the delayed fetches of a partition, the longest waiting first."""
        if key not in self._by_partition:
            return []
        return [self._delayed[reply_to] for reply_to in self._by_partition[key]]
