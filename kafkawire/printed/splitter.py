"""What all splitters share: text in, in any parts, and packets out as soon as they are complete."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple


class PrintedPacket(NamedTuple):
    """A packet.

    link: its link type (LINKTYPE_ registry); None if none fits. time_ns: since the epoch; None if
    the text has none. problem: which of its lines is missing, or how else it is not whole; its data
    is what comes before; "" for none. position: where it begins in the text.
    """

    data: bytes
    link: int | None
    time_ns: int | None
    problem: str
    position: int


class Splitter(ABC):
    """Splits text into lines, and lets a subclass make packets of them.

    most: bytes of a line that are kept; one more shows that there are more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = self._position = 0

    def feed(self, text: bytes) -> Iterator[PrintedPacket]:
        """Handle the next bytes of the text; exhaust the iterator before the next call."""
        *lines, rest = text.split(b"\n")
        for line in lines:
            self._keep(line)
            yield from self._line(self._position, self._kept())
            self._position += self._size + 1
            self._parts, self._size = [], 0
        self._keep(rest)

    def finish(self) -> Iterator[PrintedPacket]:
        """Handle the end of the text, and the last line, which has no end."""
        yield from self._line(self._position, self._kept())
        yield from self._end(self._position)

    def _keep(self, part: bytes) -> None:
        if self._size <= self._most:
            self._parts.append(part)
        self._size += len(part)

    def _kept(self) -> bytes:
        return b"".join(self._parts)[: self._most + 1]

    def _line(self, position: int, line: bytes) -> Iterator[PrintedPacket]:
        """Handle a line; one that is too long is a problem."""
        if len(line) > self._most:
            problem = f"a line of more than {self._most} bytes"
            yield PrintedPacket(b"", None, None, problem, position)
            return
        yield from self._handle(position, line.decode("latin-1"))

    @abstractmethod
    def _handle(self, position: int, text: str) -> Iterator[PrintedPacket]:
        """Handle a line that begins at a position in the text."""

    @abstractmethod
    def _end(self, position: int) -> Iterator[PrintedPacket]:
        """Handle the end of the text. position: where its last line begins."""
