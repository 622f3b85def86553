"""Reads a capture once for any number of collectors.

Law: each row, exchange and end of a connection is passed once to each collector, in their order.

    captures --> rows ------.
           `--> exchanges --+--> collectors
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kafkawire.capture.exchanges.exchanges import Ended, Exchange, Exchanges
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located
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
    files that are not captures. interrupted: whether it was not read to its end.
    """

    def __init__(self, traffic: Traffic, watch: Watch, refused: int = 0) -> None:
        self.traffic = traffic
        self.context = Context(traffic)
        self.watch = watch
        self.refused = refused
        self.interrupted = False

    def read(self, *collectors: Collector) -> None:
        """Read the capture once, for these collectors."""
        rows = [each.row for each in collectors if type(each).row is not Collector.row]
        ends = [each.ended for each in collectors if type(each).ended is not Collector.ended]
        pairs = Exchanges()
        for item in self.context.located():
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

    def _report(self, collectors: Iterable[Collector], exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            entities = Entities(self.context.names)
            entities.add(exchange.request)
            entities.add(exchange.response)
            for collector in collectors:
                collector.exchange(exchange, entities)
