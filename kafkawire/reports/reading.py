"""Reads a capture once for any number of collectors.

Law: each row, exchange and end of a connection is passed once to each collector, in their order.

    captures --> rows ------.
           `--> exchanges --+--> collectors
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

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
    """Collects data while a capture is read; subclasses override the methods they need."""

    def row(self, found: Located) -> None:
        """Handle the next row."""

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange, with the entities of both messages."""

    def ended(self, connection: Ended) -> None:
        """Handle the end of a connection, after its last row and exchange."""


class Reading:
    """A capture to read.

    context: topic names and packet positions. watch: progress of reading. refused: number of given
    files that are not captures. where: only exchanges of which a message matches are passed, and
    other rows that match.
    """

    def __init__(
        self, traffic: Traffic, watch: Watch, refused: int = 0, where: Filter | None = None
    ) -> None:
        self.traffic = traffic
        self.context = Context(traffic)
        self.watch = watch
        self.refused = refused
        self.where = where

    def read(self, *collectors: Collector) -> None:
        """Read the capture once, for these collectors."""
        rows = [each.row for each in collectors if type(each).row is not Collector.row]
        ends = [each.ended for each in collectors if type(each).ended is not Collector.ended]
        pairs = Exchanges()
        for item in self._items():
            if isinstance(item, Located):
                for row in rows:
                    row(item)
                self._report(collectors, pairs.take(item))
            else:
                self._report(collectors, pairs.end(item.connection))
                for ended in ends:
                    ended(item)

    def name_topics(self) -> None:
        """Look up names of unnamed topics in the rest of the capture."""
        self.watch.again = True
        self.context.name_topics()
        self.watch.again = False

    def _items(self) -> Iterator[Located | Ended]:
        if self.where is None:
            yield from self.context.located()
            return
        selection = Selection[Located](self.where, self.traffic, self, whole=True)
        for item in self.context.located():
            yield from selection.handle([item])
        yield from selection.finish()

    @property
    def names(self) -> TopicNames:
        """The names of topics."""
        return self.context.names

    def learn(self, row: Row) -> None:
        """Do nothing: the context has learned the names in a row before it yields it."""

    def _report(self, collectors: Iterable[Collector], exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            entities = Entities(self.context.names)
            entities.add(exchange.request)
            entities.add(exchange.response)
            for collector in collectors:
                collector.exchange(exchange, entities)
