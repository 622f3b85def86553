"""Offsets that a group committed, and consecutive commits of one member.

Law: the lag of a partition whose end offset is unknown is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType

from ..display import time_text


class Partition(NamedTuple):
    """A committed offset; lag: None if the end offset of the partition is unknown."""

    topic: Topic
    partition: int
    offset: int
    lag: int | None


class Offsets:
    """The last committed offset of each partition.

    lag: total of all partitions, None while that of every partition is unknown.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[object, int], Partition] = {}
        self._lag = self._known = 0

    def add(self, one: Partition) -> None:
        """Add a committed offset."""
        key = one.topic.key, one.partition
        before = self._last.get(key)
        if before is not None and before.lag is not None:
            self._lag -= before.lag
            self._known -= 1
        if one.lag is not None:
            self._lag += one.lag
            self._known += 1
        self._last[key] = one

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._last.values())

    def __len__(self) -> int:
        return len(self._last)

    @property
    def lag(self) -> int | None:
        return self._lag if self._known else None


class Commits:
    """Consecutive commits of one member.

    last: the last of each partition; max_lag: the highest total lag after a commit.
    """

    def __init__(self, member_id: str | None, client_id: str | None, time_ns: int) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.time_ns = self.until_ns = time_ns
        self.count = 0
        self.max_lag: int | None = None
        self.last = Offsets()

    def add(self, time_ns: int, committed: list[Partition]) -> None:
        """Add a commit."""
        self.count += 1
        self.until_ns = time_ns
        for one in committed:
            self.last.add(one)
        if self.lag is not None:
            self.max_lag = max(self.max_lag or 0, self.lag)

    @property
    def lag(self) -> int | None:
        """The total lag of all partitions."""
        return self.last.lag

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "time": time_text(self.time_ns),
            "event": EventType.COMMITTED.value,
            "member_id": self.member_id,
            "client_id": self.client_id,
            "commits": self.count,
            "until": time_text(self.until_ns),
            "lag": self.lag,
            "max_lag": self.max_lag,
            "offsets": offsets_json(self.last),
        }


def offsets_json(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    """Return the JSON form of committed offsets."""
    return [
        {
            "topic": one.topic.name,
            "topic_id": one.topic.id_text,
            "partition": one.partition,
            "offset": one.offset,
            "lag": one.lag,
        }
        for one in partitions
    ]
