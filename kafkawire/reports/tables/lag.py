"""The `lag` table: committed offsets and lags of groups over time.

The lag of a partition whose end offset is unknown is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.columns import (
    FLOAT64,
    INT32,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    micros,
)
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.group_events import COMMITS, committed_offsets

from ..reading import Collector, Reading
from ..time_scale import TimeScale
from ..watermarks import Watermarks

MAX_PARTITIONS: Final = 10_000
"""Partitions of groups whose lag is collected."""

MAX_CELLS: Final = 100_000
"""Partitions times buckets; beyond, buckets become wider."""

COLUMNS: Final[Columns] = (
    Column("time", TIME, "Start of the bucket of time."),
    Column("time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("width_ns", INT64, "Width of the bucket; the same in all rows of a capture."),
    Column("group_id", TEXT, "Group id."),
    Column("topic", TEXT, "Topic, or its id if the name is unknown."),
    Column("partition", INT32, "Partition."),
    Column("commits", INT64, "Accepted commits of the partition in the bucket."),
    Column("committed_offset", INT64, "The last one."),
    Column("end_offset", INT64, "End of the partition as known then; null if unknown."),
    Column("lag", INT64, "Records between both; null if unknown."),
    Column("max_lag", INT64, "Maximum of the lags at the commits in the bucket."),
    Column(
        "consumed_per_second",
        FLOAT64,
        "Records consumed since the bucket before, by second; null for the first.",
    ),
    Column(
        "produced_per_second",
        FLOAT64,
        "Records produced since the bucket before, by second; null if unknown.",
    ),
)


class Key(NamedTuple):
    """A partition of a group in a bucket of time."""

    group_id: str
    topic: object
    partition: int
    bucket: int


class Cell:
    """The commits of a partition in a bucket, and the lag at the last one."""

    __slots__ = ("commits", "lag", "max_lag", "offset", "time_ns")

    def __init__(self, time_ns: int, offset: int, lag: int | None) -> None:
        self.commits = 1
        self.time_ns, self.offset, self.lag, self.max_lag = time_ns, offset, lag, lag

    def add(self, later: Cell) -> None:
        """Add commits that follow."""
        self.commits += later.commits
        lags = [lag for lag in (self.max_lag, later.max_lag) if lag is not None]
        self.max_lag = max(lags, default=None)
        if later.time_ns >= self.time_ns:
            self.time_ns, self.offset, self.lag = later.time_ns, later.offset, later.lag

    @property
    def end(self) -> int | None:
        """The end offset at the last commit; None if it is unknown."""
        return None if self.lag is None else self.offset + self.lag


class LagOverTime(Collector):
    """Collects the lags of groups over time.

    watermarks: a collector that handles each exchange before this one.
    """

    apis = COMMITS
    entities = frozenset[str]()

    def __init__(self, captures: Reading, watermarks: Watermarks) -> None:
        self._names = captures.context.names
        self._watermarks = watermarks
        self._scale = TimeScale()
        self._topics: dict[object, Topic] = {}
        self._partitions: dict[tuple[str, object, int], None] = {}
        self._cells: dict[Key, Cell] = {}

    @property
    def width_ns(self) -> int:
        """The width of a bucket."""
        return self._scale.width_ns

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Add the offsets of a commit."""
        response = exchange.response
        offsets = committed_offsets(exchange, self._names)
        if response is None or response.time_ns == NO_TIME or not offsets:
            return
        group_id: str = getattr(exchange.request and exchange.request.message, "group_id", "")
        for topic, partition, offset, code in offsets:
            if code or not self._is_counted(group_id, topic, partition):
                continue
            lag = self._watermarks.lag(topic, partition, offset)
            self._widen(self._scale.include(response.time_ns))
            bucket = self._scale.bucket(response.time_ns)
            cell = Cell(response.time_ns, offset, lag)
            _add(self._cells, Key(group_id, topic.key, partition, bucket), cell)
        while len(self._cells) > MAX_CELLS and not self._scale.is_widest:
            self._widen(self._scale.widen())

    def _is_counted(self, group_id: str, topic: Topic, partition: int) -> bool:
        key = group_id, topic.key, partition
        if key not in self._partitions:
            if len(self._partitions) >= MAX_PARTITIONS:
                return False
            self._partitions[key] = None
            self._topics[topic.key] = topic
        return True

    def _widen(self, factor: int) -> None:
        if factor > 1:
            cells, self._cells = self._cells, {}
            for key, cell in cells.items():
                _add(self._cells, key._replace(bucket=key.bucket // factor), cell)

    def series(self) -> Iterator[tuple[Key, Cell]]:
        """Return the cells by group, topic, partition and time."""

        def order(item: tuple[Key, Cell]) -> tuple[object, ...]:
            key = item[0]
            return key.group_id, self.label(key), key.partition, key.bucket

        return iter(sorted(self._cells.items(), key=order))

    def label(self, key: Key) -> str:
        """Return the name of a topic, or its id."""
        topic = self._topics[key.topic]
        return topic.name or topic.id_text or ""


def _add(cells: dict[Key, Cell], key: Key, cell: Cell) -> None:
    before = cells.get(key)
    if before is None:
        cells[key] = cell
    else:
        before.add(cell)


class Lag:
    """The `lag` table of a capture."""

    def __init__(self, captures: Reading) -> None:
        watermarks = Watermarks(captures)
        self._lag = LagOverTime(captures, watermarks)
        self.collectors: Sequence[Collector] = [watermarks, self._lag]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table, at the end of the capture."""
        width = self._lag.width_ns
        last: tuple[Key, Cell] | None = None
        for key, cell in self._lag.series():
            before = last[1] if last is not None and last[0][:3] == key[:3] else None
            last = key, cell
            yield (
                micros(key.bucket * width),
                key.bucket * width,
                width,
                key.group_id,
                self._lag.label(key),
                key.partition,
                cell.commits,
                cell.offset,
                cell.end,
                cell.lag,
                cell.max_lag,
                before and rate(before.offset, cell.offset, cell.time_ns - before.time_ns),
                before and rate(before.end, cell.end, cell.time_ns - before.time_ns),
            )


def rate(first: int | None, last: int | None, time_ns: int) -> float | None:
    """Return by how much a number grew in a second; None if that is unknown."""
    if first is None or last is None or time_ns <= 0:
        return None
    return (last - first) * 1e9 / time_ns
