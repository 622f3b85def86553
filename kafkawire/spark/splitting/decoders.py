"""Resumes the capture decoders at an edge.

Packets, problems and what is found behind damage are those of the serial reader: they depend
on the file alone, not on how many bytes have been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from ...capture.files.blocks import Block, PacketBlock
from ...capture.files.columns import Ints
from ...capture.files.packet_headers import PcapBlock
from ...capture.files.pcap import PcapDecoder, PcapHeader
from ...capture.files.pcapng import PcapngDecoder, Section
from ...errors import CaptureError
from .splits import Edge


class Resumed(Protocol):
    """A decoder that was started at an edge."""

    problems: list[CaptureError]

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Decode the next bytes of the file."""

    def give_back(self) -> int:
        """Do without an incomplete packet; returns how many bytes must be fed again."""

    def finish(self) -> Iterator[Block]:
        """Handle the end of the file."""

    def places(self, block: Any) -> Ints:
        """Return the file offset of the header of each packet of the last block."""

    def edge(self, block: Any, row: int, before: Edge) -> Edge:
        """Return the edge before a packet of the last block.

        It is after the last packet if `row` is its length. before: an earlier edge.
        """


class ResumedPcap(PcapDecoder):
    """Reads a pcap from an edge on."""

    def __init__(self, header: PcapHeader, edge: Edge, first: int) -> None:
        super().__init__(header, position=edge.position, first=first, seconds=edge.seconds)

    def places(self, block: PcapBlock) -> Ints:
        positions: Ints = np.frombuffer(block.offsets, np.int64) + block.position
        return positions

    def edge(self, block: PcapBlock, row: int, before: Edge) -> Edge:
        places = self.places(block)
        if not row:
            return Edge(int(places[0]), seconds=before.seconds)
        last = block.header(row - 1)
        end = int(places[row - 1]) + block.shape.size + last.captured
        return Edge(end if row == len(block) else int(places[row]), seconds=last.seconds)


class ResumedPcapng(PcapngDecoder):
    """Reads a pcapng from an edge on."""

    def __init__(self, edge: Edge, first: int) -> None:
        section = Section(edge.order or "<", list(edge.interfaces))
        super().__init__(section, position=edge.position, first=first)

    def places(self, block: PacketBlock) -> Ints:
        positions: Ints = block.start + (block.position - self.bytes_at)
        return positions

    def edge(self, block: PacketBlock, row: int, before: Edge) -> Edge:  # noqa: ARG002
        section = self.section
        place = int(self.places(block)[row])
        return Edge(place, section.order, tuple(section.interfaces))
