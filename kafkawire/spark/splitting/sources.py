"""The uncompressed bytes of a file from any place on, in pieces that respect the serial reader's
chunks.

Law: a piece never reaches beyond the end of one of the chunks in which the serial reader would get
the same bytes; a compressed member that is not what the index says is read as the serial reader
reads it, and so is all that follows.

    plain    | CHUNK | CHUNK | ...       multiples of CHUNK are the chunks
    packed   mark -> mark -> rest        each stretch unpacked, its end and size compared
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from ...capture.files.compression import Unpacked
from ...capture.files.source import CHUNK
from ...errors import CaptureError
from .splits import Mark
from .stores import Reader

PIECE: Final = 1 << 21
"""Bytes read at a time, fewer than CHUNK: few enough to be near when they are looked at again."""

BEYOND: Final = 1 << 16
"""Bytes read first where only the end of a packet is needed; then twice as many."""


class Piece(NamedTuple):
    """Some bytes; `ends_chunk`: the serial reader gets a chunk that ends with them."""

    data: bytes
    ends_chunk: bool


class Source(Protocol):
    """problem: why the bytes ended early. confirmed: the next split's bytes do begin where it is
    said. astray: they do not; whoever reads this reads on to the end.
    """

    problem: CaptureError | None
    confirmed: bool
    astray: bool

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the bytes from `start` to the file's end; beyond `stop` few of them are wanted."""


class Plain:
    """The bytes of a file as they are."""

    def __init__(self, reader: Reader, size: int) -> None:
        self.problem: CaptureError | None = None
        self.confirmed, self.astray = True, False
        self._read = reader.read
        self._size = size

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        at, beyond = start, BEYOND
        while at < self._size:
            if at < stop:
                end = min(stop, chunk_end(at), at + PIECE)
            else:
                end = min(at + beyond, chunk_end(at))
                beyond *= 2
            data = self._read(at, min(end, self._size) - at)
            if not data:
                return
            at += len(data)
            yield Piece(data, at == self._size or at % CHUNK == 0)


class Packed:
    """What a file of many compressed members unpacks to, from one of its marks on."""

    def __init__(self, reader: Reader, size: int, marks: tuple[Mark, Mark | None]) -> None:
        self.problem: CaptureError | None = None
        self.confirmed, self.astray = marks[1] is None, False
        self._reader = reader
        self._size = size
        self._marks = marks

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:  # noqa: ARG002
        begin = self._marks[0]
        at = begin.position
        for data in self._unpacked(*self._marks):
            at += len(data)
            if at > start:
                # The serial reader looks at nothing before it has 4 bytes.
                yield Piece(data[max(0, start - at + len(data)) :], at >= 4)

    def _unpacked(self, begin: Mark, end: Mark | None) -> Iterator[bytes]:
        made = begin.position
        if end is not None:
            stretch = Unpacked(chunks(self._reader, begin.packed, end.packed))
            for data in stretch:
                made += len(data)
                self.astray = made > end.position
                yield data
            self.confirmed = stretch.problem is None and made == end.position
            self.astray = not self.confirmed
            if self.confirmed:
                begin = end
        rest = Unpacked(chunks(self._reader, begin.packed, self._size))
        at = begin.position
        for data in rest:
            at += len(data)
            if at > made:
                yield data[max(0, made - at + len(data)) :]
        if rest.problem is not None:
            kind, (reason, offset) = type(rest.problem), rest.problem.args
            self.problem = kind(reason, begin.position + offset)


def chunk_end(position: int) -> int:
    """Tell where the serial reader's chunk ends in which an offset lies."""
    return (position // CHUNK + 1) * CHUNK


def chunks(reader: Reader, start: int, stop: int) -> Iterator[bytes]:
    """Read a stretch of a file in the serial reader's chunks."""
    while start < stop:
        data = reader.read(start, min(stop, chunk_end(start)) - start)
        if not data:
            return
        yield data
        start += len(data)
