"""Passes Fetch exchanges to rules, with the partitions in them, whose states the rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, topic_key
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.messages.api_key import ApiKey

from ..reading import Collector
from .latencies import Latencies
from .subjects import MAX_SUBJECTS


class PartitionAt:
    """A partition at a broker, and what Fetch exchanges said of it so far.

    stated_epoch: the leader epoch in the last request. high_watermark, seen_ns: the largest one,
    and when it was seen; NO_END before. readable: up to where consumers could read, as of the last
    response. latencies: of requests that had something to read.
    """

    __slots__ = (
        "high_watermark",
        "index",
        "latencies",
        "readable",
        "seen_ns",
        "stated_epoch",
        "topic",
    )

    def __init__(self, topic: TopicKey, index: int) -> None:
        self.topic = topic
        self.index = index
        self.stated_epoch = self.readable = -1
        self.high_watermark: int | None = None
        self.seen_ns = 0
        self.latencies: Latencies | None = None


Partitions: TypeAlias = list[tuple[PartitionAt, Any]]
"""Partitions of a message, each with its structure."""


class Fetched(NamedTuple):
    """A Fetch with its response. body, message: those of the request and of the response.

    requested, partitions: the partitions of the request and of the response.
    """

    exchange: Exchange
    request: Row
    response: Row
    body: Any
    message: Any
    requested: Partitions
    partitions: Partitions


_make: Final[Any] = tuple.__new__
"""Creates a named tuple from all its values in order, three times as fast as its class."""


class FetchFeed(Collector):
    """Passes Fetch exchanges to rules.

    Partitions beyond `MAX_SUBJECTS` are as if they were seen for the first time.
    """

    apis = frozenset({ApiKey.FETCH})
    entities = frozenset[str]()

    def __init__(self, handlers: Sequence[Callable[[Fetched], None]]) -> None:
        self._handlers = handlers
        self._partitions: dict[tuple[str, TopicKey, int], PartitionAt] = {}

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Pass a Fetch to the rules, if both messages were decoded."""
        broker, request, response = exchange[2:]
        if request is None or response is None:
            return
        body: Any = request.message
        message: Any = response.message
        if body is None or message is None:
            return
        begin, state_of = self._begin, self._partitions.get
        requested, partitions = [], []
        for topic in body.topics:
            key = topic_key(topic.topic, topic.topic_id)
            for one in topic.partitions:
                place = broker, key, one.partition
                requested.append((state_of(place) or begin(place), one))
        for topic in message.responses:
            key = topic_key(topic.topic, topic.topic_id)
            for one in topic.partitions:
                place = broker, key, one.partition_index
                partitions.append((state_of(place) or begin(place), one))
        fetched = _make(
            Fetched, (exchange, request, response, body, message, requested, partitions)
        )
        for handle in self._handlers:
            handle(fetched)

    def _begin(self, place: tuple[str, TopicKey, int]) -> PartitionAt:
        """Return the state of a partition that is seen for the first time."""
        state = PartitionAt(place[1], place[2])
        if len(self._partitions) < MAX_SUBJECTS:
            self._partitions[place] = state
        return state
