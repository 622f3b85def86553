"""A capture being read, once, by all who listen.

Law: a tally hears of a row before whoever reads does; each row, exchange and end is told once.

    captures --> rows ------.
           `--> exchanges --+--> tallies
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkawire.capture.engine import Located
from kafkawire.capture.exchanges import Ended, Exchange, Exchanges
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.mentions import Mentions
from kafkawire.capture.tables.traffic import Traffic

from ..progress import Progress


class Tally:
    """Something that counts while a capture is read; it overrides what it wants to hear."""

    def row(self, found: Located) -> None:
        """Take the next row."""

    def exchange(self, exchange: Exchange, said: Mentions) -> None:
        """Take the next exchange, with what both sides mention."""

    def ended(self, connection: Ended) -> None:
        """Take the end of a connection, after its last row and exchange."""


class Reading(Context):
    """A capture being read. watch: how far reading is. refused: how many files were given that are
    no captures.
    """

    def __init__(self, traffic: Traffic, watch: Progress, refused: int = 0) -> None:
        super().__init__(traffic)
        self.refused = refused
        self.watch = watch
        self._pairs = Exchanges()
        self._tallies: tuple[Tally, ...] = ()

    def told_to(self, *tallies: Tally) -> Reading:
        """Let these listen."""
        self._tallies = tallies
        return self

    def read(self) -> None:
        """Read all of it."""
        for _ in self.located():
            pass

    def located(self) -> Iterator[Located | Ended]:
        """Read the capture, learning names and telling the tallies on the way."""
        for item in super().located():
            if isinstance(item, Located):
                for tally in self._tallies:
                    tally.row(item)
                self._pair(self._pairs.take(item))
            else:
                self._pair(self._pairs.end(item.connection))
                for tally in self._tallies:
                    tally.ended(item)
            yield item

    def name_topics(self) -> None:
        """Look up topics that have no name so far, in what is still to be read."""
        self.watch.again = True
        super().name_topics()
        self.watch.again = False

    def _pair(self, exchanges: Iterator[Exchange]) -> None:
        for exchange in exchanges:
            said = Mentions(self.names)
            said.add(exchange.request)
            said.add(exchange.response)
            for tally in self._tallies:
                tally.exchange(exchange, said)
