"""A capture being read, once, by all who listen.

Law: each row, exchange and end is told once, to one collector after the other.

    captures --> rows ------.
           `--> exchanges --+--> collectors
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kafkawire.capture.engine import Located
from kafkawire.capture.exchanges.exchanges import Ended, Exchange, Exchanges
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.entities import Entities


class Watch(Protocol):
    """Whoever follows how far reading is. packets, bytes: what was read so far. again: whether this
    is a second reading of the same files, which does not count.
    """

    packets: int
    bytes: int
    again: bool


class Collector:
    """Something that counts while a capture is read; it overrides what it wants to hear."""

    def row(self, found: Located) -> None:
        """Take the next row."""

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Take the next exchange, with what both sides mention."""

    def ended(self, connection: Ended) -> None:
        """Take the end of a connection, after its last row and exchange."""


class Reading:
    """A capture being read. context: names of topic ids, places of packets. watch: how far reading
    is. refused: how many files were given that are no captures.
    """

    def __init__(self, traffic: Traffic, watch: Watch, refused: int = 0) -> None:
        self.context = Context(traffic)
        self.watch = watch
        self.refused = refused

    def read(self, *collectors: Collector) -> None:
        """Read all of it, once, and tell these."""
        pairs = Exchanges()
        for item in self.context.located():
            if isinstance(item, Located):
                for collector in collectors:
                    collector.row(item)
                self._report(collectors, pairs.take(item))
            else:
                self._report(collectors, pairs.end(item.connection))
                for collector in collectors:
                    collector.ended(item)

    def name_topics(self) -> None:
        """Look up topics that have no name so far, in what is still to be read."""
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
