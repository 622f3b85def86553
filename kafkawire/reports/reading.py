"""A capture being read, once, by all who listen.

Law: each row, exchange and end is told once, to one tally after the other.

    captures --> rows ------.
           `--> exchanges --+--> tallies
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

    def exchange(self, exchange: Exchange, said: Entities) -> None:
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

    def read(self, *tallies: Collector) -> None:
        """Read all of it, once, and tell these."""
        pairs = Exchanges()
        for item in self.context.located():
            if isinstance(item, Located):
                for tally in tallies:
                    tally.row(item)
                self._tell(tallies, pairs.take(item))
            else:
                self._tell(tallies, pairs.end(item.connection))
                for tally in tallies:
                    tally.ended(item)

    def name_topics(self) -> None:
        """Look up topics that have no name so far, in what is still to be read."""
        self.watch.again = True
        self.context.name_topics()
        self.watch.again = False

    def _tell(self, tallies: Iterable[Collector], exchanges: Iterable[Exchange]) -> None:
        for exchange in exchanges:
            said = Entities(self.context.names)
            said.add(exchange.request)
            said.add(exchange.response)
            for tally in tallies:
                tally.exchange(exchange, said)
