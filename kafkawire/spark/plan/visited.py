"""Reads the segments of visited connections: packets of others are skipped by their headers.

The segments are those that the parser finds, with the same numbers of packets.

    block --plain packets: hashes of headers--> packets of the connections --> SegmentRows
      `-- the others: parsed, if they may be of the connections -----------------^
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ...capture.files.blocks import Block, PacketBlock
from ...capture.files.columns import Ints
from ...capture.files.packet_headers import PcapBlock
from ...capture.packets.parser import PacketParser
from ...capture.packets.segment_rows import SegmentRows, ordinary_rows
from ...capture.packets.segments import NUMBERS, Segments
from ...capture.tcp.connection import LITTLE
from ..shuffle.header_hashes import ETHERNET, header_sums, plain_headers
from ..shuffle.packets import Hashes, finish_hashes, hashes, is_among, take
from ..shuffle.plain_packets import select_packets

FEW: Final = 8
"""If one of so many packets is not plain, these are parsed first: usually they have no segments."""


def visited_rows(block: Block, ids: Hashes, set: int, tunnels: tuple[str, ...] = ()) -> SegmentRows:
    """Return the segments of some connections (hashes, sorted) of a set."""
    if not (isinstance(block, PcapBlock) and block.link == ETHERNET and LITTLE):
        columns = block.columns()
        plain, heads = plain_headers(columns)
        wanted = ~plain
        wanted[plain] = is_among(ids, finish_hashes(header_sums(heads), set))
        return _parsed(columns, np.flatnonzero(wanted), ids, set, tunnels).rows()
    offsets, selected, left = select_packets(*header_places(block), set, ids.tobytes())
    rows, others = np.frombuffer(selected, np.int64), np.frombuffer(left, np.int64)
    few = len(others) * FEW <= len(block)
    if few and not (len(others) and len(_parsed(block, others, ids, set, tunnels))):
        ordinary = ordinary_rows(replace(block, first=0, offsets=offsets))
        if ordinary is not None:
            return _numbered(ordinary, rows + block.first)
    return _parsed(block, np.union1d(rows, others), ids, set, tunnels).rows()


def _parsed(block: Block, rows: Ints, ids: Hashes, set: int, tunnels: tuple[str, ...]) -> Segments:
    """Parse some packets of a block; returns the segments of some connections."""
    segments = PacketParser(tunnels).parse(select(block.columns(), rows))
    segments = take(segments, is_among(ids, hashes(segments, set)))
    return replace(segments, packet=block.first + rows[segments.packet - block.first])


def _numbered(segments: SegmentRows, packets: Ints) -> SegmentRows:
    """Replace the numbers of packets, which are indexes of `packets`."""
    numbers = np.frombuffer(segments.numbers, "<i8").reshape(-1, len(NUMBERS)).copy()
    numbers[:, NUMBERS.index("packet")] = packets[column(segments, "packet")]
    return SegmentRows(segments.data, segments.keys, numbers.tobytes())


def column(rows: SegmentRows, name: str) -> Ints:
    """Return a column of the numbers of segments."""
    numbers = np.frombuffer(rows.numbers, "<i8").reshape(-1, len(NUMBERS))
    numbers_of_name: Ints = numbers[:, NUMBERS.index(name)]
    return numbers_of_name


def header_places(block: PcapBlock) -> tuple[bytes, bytes, int, bool]:
    """Return the data of a block, and where its packet headers are: see `plain_packets`."""
    return block.data, block.offsets, block.shape.size, block.shape.order == ">"


def select(block: PacketBlock, rows: Ints) -> PacketBlock:
    """Select packets of a block; they are numbered from the first packet of the block on."""
    columns = (block.ts, block.start, block.captured, block.original, block.link)
    return PacketBlock(block.data, block.position, block.first, *(each[rows] for each in columns))
