"""Offsets that a group committed, and consecutive commits of one member.

The lag of a partition whose end offset is unknown is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.group_event import EventType

from ...display import time_text


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


MAX_POINTS: Final = 500
"""Points of a series over time."""


class LagSeries:
    """The total lag of a group at its commits; of a long series, the maximum of several commits.

    points: times and lags, MAX_POINTS at most.
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, int]] = []
        self._stride = 1
        self._merged = 0  # commits in the last point

    def add(self, time_ns: int, lag: int) -> None:
        """Add the lag after a commit."""
        if self.points and self._merged < self._stride:
            last = self.points[-1]
            self.points[-1] = (time_ns, lag) if lag >= last[1] else last
            self._merged += 1
            return
        if len(self.points) >= MAX_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [max(pair, key=lambda point: point[1]) for pair in pairs]
            self._stride *= 2
        self.points.append((time_ns, lag))
        self._merged = 1


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
