"""Counts exchanges in buckets of time, by API, client and topics, in bounded memory.

Each exchange with a time is counted in one cell, so sums over cells are exact; a client or a
topic that is listed by name has all its exchanges under that name, the others share `None`. When
there are too many cells, buckets become wider or fewer names are listed.

    exchange --> (bucket, API, client, topics) --> Cell --too many--> fewer names, wider buckets
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import ceil, log2
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.extraction.entities import Entities

from .cell import Cell, merged
from .reading import Collector
from .time_scale import TimeScale

MAX_NAMES: Final = 1000
"""Clients, and topics, that are counted by name while a capture is read."""

MAX_CELLS: Final = 40_000
LATENCIES_PER_DOUBLING: Final = 4
"""Latencies are counted in classes of which each is a fourth root of two wider than the last."""


class Key(NamedTuple):
    """What a cell counts. client, topics: numbers of names, `OTHERS` for all not listed."""

    bucket: int
    api: str
    client: int
    topics: tuple[int, ...]


OTHERS: Final = -1


class LatencyClasses(Counter[int]):
    """Latencies by class."""

    def add(self, ns: int) -> None:
        """Add a latency."""
        self[latency_class(ns)] += 1

    def merge(self, other: LatencyClasses) -> None:
        """Add the latencies of another."""
        self.update(other)


BucketCell = Cell[LatencyClasses]


def latency_class(ns: int) -> int:
    """Return the class of a latency: c has those up to 2^(c/4) ns; 0 has those not positive."""
    return 0 if ns <= 0 else max(1, ceil(log2(ns) * LATENCIES_PER_DOUBLING))


class _Names:
    """Names by number, until there are too many."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self.keys: list[object] = []

    def number(self, key: object) -> int:
        number = self._numbers.get(key)
        if number is None:
            if len(self.keys) >= MAX_NAMES:
                return OTHERS
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number


class Counts(NamedTuple):
    """Cells for display, with their names. width_ns: of a bucket.

    left_out: whether clients, and topics, are among the others.
    """

    width_ns: int
    clients: list[str]
    topics: list[str]
    cells: dict[Key, BucketCell]


class Buckets(Collector):
    """Collects exchanges over time. without_time: those that have none."""

    def __init__(self) -> None:
        self.without_time = 0
        self._scale = TimeScale()
        self._clients, self._topics = _Names(), _Names()
        self._topic_of: dict[int, Topic] = {}
        self._listed_clients = self._listed_topics = MAX_NAMES
        self._cells: dict[Key, BucketCell] = {}
        self._fold: Callable[[Key], Key] = _same

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange, at the time of its request."""
        row = exchange.main_row
        if row.time_ns == NO_TIME:
            self.without_time += 1
            return
        api = row.api_name or "unknown"
        key = self._fold(
            Key(
                self._bucket(row.time_ns),
                api,
                self._clients.number(row.client_id or exchange.client.rpartition(":")[0]),
                tuple(sorted({self._topic(one) for one in entities.topics.values()})),
            )
        )
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = Cell(LatencyClasses())
        cell.count(exchange, entities)
        if len(self._cells) > MAX_CELLS:
            self._shrink(MAX_CELLS // 2)

    def _topic(self, topic: Topic) -> int:
        number = self._topics.number(topic.key)
        if number != OTHERS:
            self._topic_of.setdefault(number, topic)
        return number

    # -- buckets

    def _bucket(self, time_ns: int) -> int:
        self._widen(self._scale.include(time_ns))
        return self._scale.bucket(time_ns)

    def _widen(self, factor: int) -> None:
        if factor > 1:
            self._cells = merged(self._cells, lambda key: key._replace(bucket=key.bucket // factor))

    # -- names

    def _shrink(self, most: int) -> None:
        """List fewer names, or make buckets wider, until there are at most so many cells."""
        while len(self._cells) > most:
            if max(self._listed_clients, self._listed_topics) > 1:
                self._list_names(
                    min(self._listed_clients, len(self._clients.keys)) // 2,
                    min(self._listed_topics, len(self._topics.keys)) // 2,
                )
            elif not self._scale.is_widest:
                self._widen(self._scale.widen())
            else:
                return

    def _list_names(self, clients: int, topics: int) -> None:
        """List the clients and topics with the most requests; the choice is final."""
        self._listed_clients, self._listed_topics = clients, topics
        self._fold = _folding(
            _most(clients, [((key.client,), cell) for key, cell in self._cells.items()]),
            _most(topics, [(key.topics, cell) for key, cell in self._cells.items()]),
        )
        self._cells = merged(self._cells, self._fold)

    # -- result

    def counts(self, names: int, cells: int) -> Counts:
        """Return the cells with so many names at most, and about so many cells.

        Nothing can be counted after that.
        """
        self._cells = merged(self._cells, self._by_label())
        if len(self._clients.keys) > names or len(self._topics.keys) > names:
            self._list_names(min(names, self._listed_clients), min(names, self._listed_topics))
        self._shrink(cells)
        keys = self._clients.keys
        return Counts(
            self._scale.width_ns,
            [str(key) for key in keys],
            [self._label(number) for number in range(len(self._topics.keys))],
            self._cells,
        )

    def _label(self, number: int) -> str:
        topic = self._topic_of[number]
        return topic.name or topic.id_text or ""

    def _by_label(self) -> Callable[[Key], Key]:
        """Merge topics whose names turned out to be the same."""
        first: dict[str, int] = {}
        same = {n: first.setdefault(self._label(n), n) for n in self._topic_of}
        return lambda key: key._replace(
            topics=tuple(sorted({same.get(topic, topic) for topic in key.topics}))
        )


def _same(key: Key) -> Key:
    return key


def _folding(clients: set[int], topics: set[int]) -> Callable[[Key], Key]:
    def fold(key: Key) -> Key:
        return key._replace(
            client=key.client if key.client in clients else OTHERS,
            topics=tuple(sorted({one if one in topics else OTHERS for one in key.topics})),
        )

    return fold


def _most(number: int, cells: Iterable[tuple[tuple[int, ...], BucketCell]]) -> set[int]:
    """Return the numbers with the most exchanges."""
    total: Counter[int] = Counter()
    for numbers, cell in cells:
        for one in numbers:
            if one != OTHERS:
                total[one] += cell.requests + cell.responses
    return {one for one, _ in total.most_common(number)}
