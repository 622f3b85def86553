"""Resumes the capture decoders at an edge; they resynchronise after damage as the serial reader
does.

Law: what a search after damage finds depends on how far the serial reader had read, so a search
waits for the end of one of its chunks.

    chunks of the serial reader   |---------------|---------------|
    pieces of a split                 |---|----|--|
    damage                                  ^ searched only with all bytes up to here
                                                  ^

That suffices: a search begins when SEARCH_BYTES after the damage are available, and later damage
needs later bytes, so no search depends on how far an earlier one had to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ...capture.files.blocks import Ints, PacketBlock
from ...capture.files.buffer import InputBuffer
from ...capture.files.pcap import PcapDecoder, PcapHeader
from ...capture.files.pcapng import PcapngDecoder, Section
from ...capture.files.pcapng_blocks import LAYOUTS
from ...capture.files.resynchronisation import Shape
from ...errors import CaptureError
from .splits import Edge


class Resumed(Protocol):
    """A decoder that was started at an edge.

    ends_chunk: set before `feed`: whether a chunk of the serial reader ends with these bytes.
    """

    problems: list[CaptureError]
    ends_chunk: bool

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Decode the next bytes of the file."""

    def finish(self) -> Iterator[PacketBlock]:
        """Handle the end of the file."""

    def places(self, block: PacketBlock) -> Ints:
        """Return the file offset of the header of each packet of the last block."""

    def edge(self, block: PacketBlock, row: int, before: Edge) -> Edge:
        """Return the edge before a packet of the last block (after the last packet if `row` is its
        length). before: an earlier edge.
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
        self._input = InputBuffer(edge.position)
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
            self._input.consume(start)
            return None
        return super()._search(data, start, ended=ended)
