"""The capture decoders, resumed at an edge, and searching behind damage as the serial reader would.

Law: what a search behind damage finds depends on how far the serial reader had read; so a search
waits for the end of one of its chunks.

    chunks of the serial reader   |---------------|---------------|
    pieces of a split                 |---|----|--|
    damage                                  ^ searched only with all bytes up to here
                                                  ^

That is enough: a search begins when SEARCH_BYTES behind the damage are there, and later damage
needs later bytes, so that no search depends on how far an earlier one had to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ...capture.files.blocks import Ints, PacketBlock
from ...capture.files.buffer import InputBuffer
from ...capture.files.pcap import PcapDecoder, PcapHeader
from ...capture.files.pcapng import LAYOUTS, PcapngDecoder, Section
from ...capture.files.resynchronisation import Shape
from ...errors import CaptureError
from .splits import Edge


class Resumed(Protocol):
    """A decoder that was started at an edge.

    ends_chunk: to be set before feeding: whether the serial reader's chunk ends where the bytes
    end.
    """

    problems: list[CaptureError]
    ends_chunk: bool

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Take the next bytes of the file."""

    def finish(self) -> Iterator[PacketBlock]:
        """Take note that the file ends here."""

    def places(self, block: PacketBlock) -> Ints:
        """Tell where in the file the header of each packet of the last block lies."""

    def edge(self, block: PacketBlock, row: int, before: Edge) -> Edge:
        """Make the edge before a packet of the last block (behind it all where row is its length);
        `before` is an earlier edge.
        """


class ResumedPcap(PcapDecoder):
    """Reads a pcap from an edge on."""

    def __init__(self, header: PcapHeader, edge: Edge, first: int) -> None:
        super().__init__(header, position=edge.position, first=first)
        self.ends_chunk = False
        self._seconds = edge.seconds
        self._shape = header.shape

    def places(self, block: PacketBlock) -> Ints:
        found: Ints = block.start + (block.position - self._shape.size)
        return found

    def edge(self, block: PacketBlock, row: int, before: Edge) -> Edge:
        seconds = before.seconds
        if row:
            at = int(block.start[row - 1]) - self._shape.size
            order = np.dtype(self._shape.order + "u4")
            seconds = int(np.frombuffer(block.data, order, 1, at)[0])
        if row < len(block):
            return Edge(int(self.places(block)[row]), seconds=seconds)
        end = int(block.start[-1] + block.captured[-1]) + block.position
        return Edge(end, seconds=seconds)

    def _search(self, data: bytes, start: int, shape: Shape, *, ended: bool) -> int | None:
        if not ended and not self.ends_chunk:
            self._input.consume(start)
            return None
        return super()._search(data, start, shape, ended=ended)


class ResumedPcapng(PcapngDecoder):
    """Reads a pcapng from an edge on."""

    def __init__(self, edge: Edge, first: int) -> None:
        super().__init__()
        self.ends_chunk = False
        self._inbox = InputBuffer(edge.position)
        self._number = first
        self._section = Section(edge.order or "<", list(edge.interfaces))
        self._bytes_at = 0

    def places(self, block: PacketBlock) -> Ints:
        found: Ints = block.start + (block.position - self._bytes_at)
        return found

    def edge(self, block: PacketBlock, row: int, before: Edge) -> Edge:  # noqa: ARG002
        section = self._section
        at = int(self.places(block)[row])
        return Edge(at, section.order, tuple(section.interfaces))

    def _columns(self, data: bytes, kind: int, places: Ints) -> PacketBlock:
        self._bytes_at = LAYOUTS[kind].bytes_at
        return super()._columns(data, kind, places)

    def _search(self, data: bytes, start: int, *, ended: bool) -> int | None:
        if not ended and not self.ends_chunk:
            self._inbox.consume(start)
            return None
        return super()._search(data, start, ended=ended)
