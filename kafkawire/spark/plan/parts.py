"""What one Spark task reads: splits of files of the set, and the rows it makes of their packets.

Law: a part's rows depend on nothing but its packets; what needs its neighbours (fragments of IP
datagrams, what is wrong with the file) goes on as rows that say so.

    split --> blocks --> segments --> rows by bucket of connections
                    `--> fragments, as captured --> rows by file --joined--> rows by bucket
                    `--> Notice: problems, how far it read ----> rows by file
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from ...capture.files.blocks import Ints, PacketBlock
from ...capture.multifile import file_and_packet, packet_id
from ...capture.packets.headers import Kind
from ...capture.packets.parser import PacketParser, Segments
from ...errors import CaptureError, UnsupportedLinkType
from ..decode.packets import Kind as Rows
from ..decode.packets import (
    Mixed,
    Placing,
    is_among,
    mixed,
    piece_row,
    pieces_in,
    row_of,
    segment_rows,
    taken,
)
from ..decode.plain import numbered_plainly
from ..errors import OutOfOrder
from ..splitting import Split, read

T = TypeVar("T")

FRAGMENTS: Final = frozenset({Kind.FRAGMENT4, Kind.FRAGMENT6})

JOINED: Final = 1 << 10
"""Segments of datagrams that are given at a time: they lie between others, which wait for them."""


Links: TypeAlias = dict[int, tuple[CaptureError, ...]]
"""Link type -> what is wrong with it, where it stands first."""


class Notice(NamedTuple):
    """What a part tells about its file.

    problems: what could not be read. once: what a file says once, though each of its parts may:
    link types that are not read, by what tells them apart.
    """

    problems: tuple[str, ...] = ()
    once: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A split, its file by its place among all, and the set that is of. packets: of the file."""

    file: int
    set: int
    split: Split
    packets: int = 0

    def segments(
        self, placing: Placing, hand_on: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Read the part; hand on what is no segment. Raises OSError where it cannot be read."""
        reading = read(self.split)
        links: Links = {}
        for block in reading:
            first = packet_id(self.file, block.first)
            note_links(block, links)
            found, pieces = apart(replace(block, first=first))
            if len(pieces):
                rows = select(block, pieces)
                hand_on(piece_row(rows, first + pieces, placing.of_file(self.file)))
            if len(found):
                yield found
        said = told(reading.proof.problems, links)
        if any(said):
            last = packet_id(self.file, self.packets)
            hand_on(row_of(placing.of_file(self.file), Rows.NOTICE, last, pickle.dumps(said)))

    def visited(self, ids: Mixed) -> Iterator[Segments]:
        """Read the segments of some connections (mixed, sorted), and parse little else; no datagram
        of the file comes in pieces. Raises OSError where it cannot be read.
        """
        for block in read(self.split):
            plain, numbers = numbered_plainly(block, self.set)
            wanted = ~plain
            wanted[plain] = is_among(ids, numbers)
            rows = np.flatnonzero(wanted)
            found = PacketParser().parse(select(block, rows))
            if not plain.all():
                found = taken(found, is_among(ids, mixed(found, self.set)))
            if len(found):
                packets = packet_id(self.file, block.first) + rows[found.packet - block.first]
                yield replace(found, packet=packets)

    def rows(self, placing: Placing) -> Iterator[pa.RecordBatch]:
        """Read the part; all of it is handed on."""
        others: list[pa.RecordBatch] = []
        for found in self.segments(placing, others.append):
            yield from drained(others)
            yield from segment_rows(found, self.set, placing)
        yield from drained(others)


@dataclass(frozen=True, slots=True)
class Visit:
    """Connections (mixed, sorted) whose packets never move, and the parts that have some, in order.
    cut: whether they have more bytes than one task should make rows of.
    """

    ids: Mixed
    parts: tuple[Part, ...]
    cut: bool

    def segments(self) -> Iterator[Segments]:
        """Give the connections' segments. Raises OutOfOrder, OSError."""
        last = -1
        for part in self.parts:
            for found in part.visited(self.ids):
                falls = np.flatnonzero(np.diff(found.packet, prepend=last) <= 0)
                if len(falls):
                    raise OutOfOrder(Rows.SEGMENTS, int(found.packet[falls[0]]))
                last = int(found.packet[-1])
                yield found


@dataclass(frozen=True, slots=True)
class Region:
    """Parts that lie behind one another, read by one task. moved: connections (mixed, sorted) that
    have packets elsewhere, too; None where all of them are handed on.
    """

    parts: tuple[Part, ...]
    moved: Mixed | None = None

    def segments(
        self, placing: Placing, hand_on: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Give the segments of connections that lie here alone; hand on all else."""
        moved = self.moved
        assert moved is not None
        for part in self.parts:
            for found in part.segments(placing, hand_on):
                rest = found
                if len(moved):
                    leaves = is_among(moved, mixed(found, part.set))
                    if leaves.any():
                        gone = taken(found, np.flatnonzero(leaves))
                        for row in segment_rows(gone, part.set, placing):
                            hand_on(row)
                        rest = taken(found, np.flatnonzero(~leaves))
                if len(rest):
                    yield rest


def drained(rows: list[T]) -> Iterator[T]:
    """Give what was collected, and forget it."""
    yield from rows
    rows.clear()


def told(problems: Iterable[CaptureError], links: Links) -> Notice:
    """Say what a split has to tell of its file."""
    plain, once = [], []
    for problem in problems:
        if isinstance(problem, UnsupportedLinkType):
            once.append((problem.reason, str(problem)))
        else:
            plain.append(str(problem))
    once += [(f"link type {link}", "".join(map(str, said))) for link, said in links.items() if said]
    return Notice(tuple(plain), tuple(once))


def apart(block: PacketBlock) -> tuple[Segments, Ints]:
    """Parse a block but for fragments of IP datagrams; give the rows of those."""
    parser = PacketParser()
    found = parser.parse(block)
    if not _fragments(parser):
        return found, np.empty(0, np.int64)
    rows = np.array(_find(block, 0), np.int64)
    others = np.setdiff1d(np.arange(len(block)), rows)
    rest = PacketParser().parse(select(block, others))
    return replace(rest, packet=block.first + others[rest.packet - block.first]), rows


def select(block: PacketBlock, rows: Ints) -> PacketBlock:
    """Take packets; they are numbered on from the block's first."""
    columns = (block.ts, block.start, block.captured, block.original, block.link)
    return PacketBlock(block.data, block.position, block.first, *(each[rows] for each in columns))


def _fragments(parser: PacketParser) -> int:
    return sum(parser.skipped[kind] for kind in FRAGMENTS)


def _find(block: PacketBlock, at: int) -> list[int]:
    """List the packets of a block that are fragments, by halves."""
    parser = PacketParser()
    parser.parse(block)
    if not _fragments(parser):
        return []
    if len(block) == 1:
        return [at]
    half = len(block) // 2
    return _find(block[:half], at) + _find(block[half:], at + half)


def note_links(block: PacketBlock, links: Links) -> None:
    """Note what is said of link types that are not read, where each stands first."""
    for link in np.unique(block.link).tolist():
        if link not in links:
            first = np.flatnonzero(block.link == link)[:1]
            parser = PacketParser()
            parser.parse(select(block, first))
            links[link] = tuple(parser.problems)


def join_pieces(
    rows: Iterable[tuple[int, bytes]], sets: Sequence[int], placing: Placing
) -> Iterator[pa.RecordBatch]:
    """Put the datagrams of files together; what is given comes in packet order: first packet, body.
    sets: of each file.
    """
    parser, file = PacketParser(), -1
    for packet, body in rows:
        mine, _ = file_and_packet(packet)
        if mine != file:
            parser, file = PacketParser(), mine
        block, numbers = pieces_in(body)
        found = parser.parse(block)
        found = replace(found, packet=numbers[found.packet - 1])
        for at in range(0, len(found), JOINED):
            yield from segment_rows(taken(found, slice(at, at + JOINED)), sets[file], placing)
