"""Holds what chunks of connections are read with.

However the items of a connection are cut into chunks, the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...capture.exchanges.exchanges import Ended
from ...capture.frames.decoding import LocatedItem
from ...capture.multifile import file_and_packet
from ...capture.rows import Located, Row
from ..plan.facts import Facts, UnresolvedTopics
from ..splitting.file_list import recent
from .contexts import BareContext

Values = tuple[Any, ...]


class Places:
    """A capture without items of its own, which only locates packets. names: of all files."""

    repeatable = False

    def __init__(self, names: Sequence[str]) -> None:
        self._name = recent(names)

    def place(self, packet: int) -> tuple[str, int]:
        """Return the file of a packet and its number there."""
        file, number = file_and_packet(packet)
        return self._name(file), number

    def __iter__(self) -> Iterator[Located | Ended]:
        return iter(())

    def raw_frames(self) -> Iterator[LocatedItem | Ended]:
        """Yield nothing."""
        return iter(())

    def batches(self) -> Iterator[list[LocatedItem | Ended]]:
        """Yield nothing."""
        return iter(())

    def again(self) -> Places:
        """Return this reader, which is not repeatable."""
        return self


class ChunkContext(BareContext):
    """The state of making rows of a chunk. names, sets: of all files."""

    def __init__(
        self, names: Sequence[str], sets: Sequence[int], facts: Facts, *, bare: bool = False
    ) -> None:
        super().__init__(Places(names), bare=bare)
        self.names = UnresolvedTopics(facts, sets)
        self._facts = facts

    def learn(self, row: Row) -> None:
        """Record the names that a message states."""
        self._facts.at = row.packet
        super().learn(row)
