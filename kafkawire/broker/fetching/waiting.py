"""Fetches that wait for records, as data.

Law: a wait ends by records, by an error, by its time, or with its client; whichever is first takes
it out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..request import Request
from .sessions import Context


class Wait(NamedTuple):
    """A parked Fetch. partitions: whose records would wake it."""

    request: Request
    context: Context
    partitions: tuple[tuple[str, int], ...]


class Waiting:
    """The parked fetches of one broker."""

    def __init__(self) -> None:
        self._waits: dict[int, Wait] = {}
        self._by_partition: dict[tuple[str, int], dict[int, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._waits)

    def park(self, wait: Wait) -> None:
        """Keep a Fetch."""
        self._waits[wait.request.reply_to] = wait
        for key in wait.partitions:
            self._by_partition[key][wait.request.reply_to] = None

    def take(self, reply_to: int) -> Wait | None:
        """Take a Fetch out."""
        wait = self._waits.pop(reply_to, None)
        for key in () if wait is None else wait.partitions:
            others = self._by_partition[key]
            others.pop(reply_to, None)
            if not others:
                del self._by_partition[key]
        return wait

    def forget(self, reply_to: int) -> None:
        """Drop a Fetch whose client is gone."""
        self.take(reply_to)

    def for_partition(self, key: tuple[str, int]) -> list[Wait]:
        """Give those that records of a partition may wake, the longest waiting first."""
        if key not in self._by_partition:
            return []
        return [self._waits[reply_to] for reply_to in self._by_partition[key]]
