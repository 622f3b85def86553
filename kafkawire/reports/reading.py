"""Reads a capture once for any number of collectors.

Law: each row, exchange and end of a connection is passed once to each collector, in their order.

    captures --> rows ------.
           `--> exchanges --+--> collectors
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final, Protocol

from kafkawire.capture.exchanges.exchanges import Ended, Exchange, Exchanges
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.filters import Filter
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Row
from kafkawire.capture.selection.selecting import Selection
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.entities import Entities


class Watch(Protocol):
    """Follows the progress of reading.

    packets, bytes: read so far. again: whether the files are being read a second time, which does
    not count.
    """

    packets: int
    bytes: int
    again: bool


class Collector:
    """Collects data while a capture is read; subclasses override the methods they need.

    apis: the API keys of the rows and exchanges that it needs; None: those of all.
    """

    apis: ClassVar[frozenset[int] | None] = None

    def row(self, found: Located) -> None:
        """Handle the next row."""

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange, with the entities of both messages."""

    def ended(self, connection: Ended) -> None:
        """Handle the end of a connection, after its last row and exchange."""


ROW: Final = "row"
EXCHANGE: Final = "exchange"
ENDED: Final = "ended"


class Handlers:
    """The methods of that name of the collectors that override it."""

    def __init__(self, collectors: Sequence[Collector], name: str) -> None:
        own = overriding(collectors, name)
        known = {api_key for each in own for api_key in each.apis or ()}
        self._by_api: dict[int | None, list[Callable[..., None]]] = {
            api_key: [getattr(each, name) for each in own if _wants(each, api_key)]
            for api_key in known
        }
        self.all: list[Callable[..., None]] = [
            getattr(each, name) for each in own if each.apis is None
        ]

    def of(self, api_key: int | None) -> list[Callable[..., None]]:
        """List those that need an API."""
        return self.all if api_key is None else self._by_api.get(api_key, self.all)


def overriding(collectors: Sequence[Collector], name: str) -> list[Collector]:
    """List the collectors that override a method."""
    none = getattr(Collector, name)
    return [each for each in collectors if getattr(type(each), name) is not none]


def _wants(collector: Collector, api_key: int) -> bool:
    return collector.apis is None or api_key in collector.apis


class Reading:
    """A capture to read.

    context: topic names and packet positions. watch: progress of reading. refused: number of given
    files that are not captures. where: only exchanges of which a message matches are passed, and
    other rows that match. interrupted: whether it was not read to its end.
    """

    def __init__(
        self, traffic: Traffic, watch: Watch, refused: int = 0, where: Filter | None = None
    ) -> None:
        self.traffic = traffic
        self.context = Context(traffic)
        self.watch = watch
        self.refused = refused
        self.where = where
        self.interrupted = False

    def read(self, *collectors: Collector) -> None:
        """Read the capture once, for these collectors."""
        rows, exchanges = Handlers(collectors, ROW), Handlers(collectors, EXCHANGE)
        ends = overriding(collectors, ENDED)  # connections have no API
        pairs = Exchanges()
        for item in self._items():
            if isinstance(item, Ended):
                self._report(exchanges, pairs.end(item.connection))
                for each in ends:
                    each.ended(item)
                continue
            for row in rows.of(item.row.api_key):
                row(item)
            completed = pairs.take(item)
            if completed:
                self._report(exchanges, completed)

    def name_topics(self) -> None:
        """Look up names of unnamed topics in the rest of the capture."""
        self.watch.again = True
        self.context.name_topics()
        self.watch.again = False

    def _items(self) -> Iterator[Located | Ended]:
        found = self._decoded()
        if self.where is None:
            return found
        return self._selected(found, self.where)

    def _decoded(self) -> Iterator[Located | Ended]:
        decode = self.context.decode
        for batch in self.traffic.batches():
            for item in batch:
                yield item if isinstance(item, Ended) else decode(item)

    def _selected(
        self, items: Iterable[Located | Ended], where: Filter
    ) -> Iterator[Located | Ended]:
        selection = Selection[Located](where, self.traffic, self, whole=True)
        for item in items:
            yield from selection.handle([item])
        yield from selection.finish()

    @property
    def names(self) -> TopicNames:
        """The names of topics."""
        return self.context.names

    def learn(self, row: Row) -> None:
        """Do nothing: the context has learned the names in a row before it yields it."""

    def _report(self, handlers: Handlers, exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            handle = handlers.of(exchange.main_row.api_key)
            if not handle:
                continue
            entities = Entities(self.context.names)
            entities.add(exchange.request)
            entities.add(exchange.response)
            for each in handle:
                each(exchange, entities)
