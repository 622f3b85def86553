"""Reads the uncompressed bytes of a file from any offset on, in pieces.

If a compressed member differs from the index, it and everything after it are read as the
serial reader reads them.

    plain    a piece after another
    packed   mark -> mark -> rest        each range decompressed, its end and size compared
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from ...capture.files.source import CHUNK, Unpacked
from ...errors import CaptureError
from .splits import Mark
from .stores import Reader

PIECE: Final = 1 << 21
"""Bytes read at a time, so few that they are still cached when they are decoded."""

BEYOND: Final = 1 << 16
"""Bytes read first where only the end of a packet is needed; then twice as many."""


class Piece(NamedTuple):
    """Some bytes.

    is_last_read: the source has not read on yet, and can read the end of them again.
    """

    data: bytes
    is_last_read: bool = False


class Source(Protocol):
    """problem: why the bytes ended early.

    confirmed: the bytes of the next split start where the index says. astray: they do not; the
    reader reads to the end of the file.
    """

    problem: CaptureError | None
    confirmed: bool
    astray: bool

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the bytes from `start` to the end of the file; few after `stop` are needed."""

    def unread(self, count: int) -> None:
        """Let the next piece begin with the last `count` bytes of this one."""


class Plain:
    """The bytes of an uncompressed file.

    The incomplete packet at the end of a piece is read again, as `FileChunks` does it.
    """

    def __init__(self, reader: Reader, size: int) -> None:
        self.problem: CaptureError | None = None
        self.confirmed, self.astray = True, False
        self._read = reader.read
        self._size = size
        self._unread = 0

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        position, beyond = start, BEYOND
        while position < self._size or self._unread:
            if position < stop:
                end = min(stop, position + PIECE)
            else:
                end = position + min(beyond, CHUNK)
                beyond *= 2
            begin, self._unread = position - self._unread, 0
            data = self._read(begin, min(end, self._size) - begin)
            if not data:
                return
            position = begin + len(data)
            yield Piece(data, is_last_read=True)

    def unread(self, count: int) -> None:
        self._unread = count


class Packed:
    """The content of a file of many compressed members, from one of its marks on."""

    def __init__(self, reader: Reader, size: int, marks: tuple[Mark, Mark | None]) -> None:
        self.problem: CaptureError | None = None
        self.confirmed, self.astray = marks[1] is None, False
        self._reader = reader
        self._size = size
        self._marks = marks

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:  # noqa: ARG002
        begin = self._marks[0]
        position = begin.position
        for data in self._unpacked(*self._marks):
            position += len(data)
            if position > start:
                yield Piece(data[max(0, start - position + len(data)) :])

    def unread(self, count: int) -> None:
        """Do nothing: no piece is marked as the last one read."""

    def _unpacked(self, begin: Mark, end: Mark | None) -> Iterator[bytes]:
        produced = begin.position
        if end is not None:
            member_range = Unpacked(chunks(self._reader, begin.packed, end.packed))
            for data in member_range:
                produced += len(data)
                self.astray = produced > end.position
                yield data
            self.confirmed = member_range.problem is None and produced == end.position
            self.astray = not self.confirmed
            if self.confirmed:
                begin = end
        rest = Unpacked(chunks(self._reader, begin.packed, self._size))
        position = begin.position
        for data in rest:
            position += len(data)
            if position > produced:
                yield data[max(0, produced - position + len(data)) :]
        if rest.problem is not None:
            kind, (reason, offset) = type(rest.problem), rest.problem.args
            self.problem = kind(reason, begin.position + offset)


def chunks(reader: Reader, start: int, stop: int) -> Iterator[bytes]:
    """Read a range of a file in chunks."""
    while start < stop:
        data = reader.read(start, min(CHUNK, stop - start))
        if not data:
            return
        yield data
        start += len(data)
