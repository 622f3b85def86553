"""What one Spark task reads: splits of files of the set, and the rows it makes of their packets.

Law: a part's rows depend on nothing but its packets; what needs its neighbours (fragments of IP
datagrams, what is wrong with the file) goes on as rows that say so.

    split --> blocks --> segments --> rows by bucket of connections
                    `--> fragments, as captured --> rows by file --joined--> rows by bucket
                    `--> FileProblems: problems, how far it read ----> rows by file
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from ...capture.files.blocks import Ints, PacketBlock
from ...capture.multifile import numbered, place_of
from ...capture.packets.headers import Kind
from ...capture.packets.parser import PacketParser, Segments
from ...errors import CaptureError, UnsupportedLinkType
from ..decode.packets import (
    Hashes,
    Partitioner,
    fragment_row,
    fragments_in,
    hashes,
    is_among,
    row_of,
    segment_rows,
    take,
)
from ..decode.packets import Kind as Rows
from ..decode.plain import header_hashes
from ..errors import OutOfOrder
from ..splitting import Split, read

T = TypeVar("T")

FRAGMENTS: Final = frozenset({Kind.FRAGMENT4, Kind.FRAGMENT6})

SEGMENTS_PER_ROW: Final = 1 << 10
"""Segments of datagrams that are given at a time: they lie between others, which wait for them."""


Links: TypeAlias = dict[int, tuple[CaptureError, ...]]
"""Link type -> what is wrong with it, where it stands first."""


class FileProblems(NamedTuple):
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
        self, partitioner: Partitioner, emit: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Read the part; hand on what is no segment. Raises OSError where it cannot be read."""
        reading = read(self.split)
        links: Links = {}
        for block in reading:
            first = numbered(self.file, block.first)
            note_links(block, links)
            found, fragments = split_fragments(replace(block, first=first))
            if len(fragments):
                rows = select(block, fragments)
                emit(fragment_row(rows, first + fragments, partitioner.of_file(self.file)))
            if len(found):
                yield found
        found_problems = file_problems(reading.proof.problems, links)
        if any(found_problems):
            last = numbered(self.file, self.packets)
            emit(
                row_of(
                    partitioner.of_file(self.file),
                    Rows.PROBLEMS,
                    last,
                    pickle.dumps(found_problems),
                )
            )

    def visited(self, ids: Hashes) -> Iterator[Segments]:
        """Read the segments of some connections (mixed, sorted), and parse little else; no datagram
        of the file comes in pieces. Raises OSError where it cannot be read.
        """
        for block in read(self.split):
            plain, numbers = header_hashes(block, self.set)
            wanted = ~plain
            wanted[plain] = is_among(ids, numbers)
            rows = np.flatnonzero(wanted)
            found = PacketParser().parse(select(block, rows))
            if not plain.all():
                found = take(found, is_among(ids, hashes(found, self.set)))
            if len(found):
                packets = numbered(self.file, block.first) + rows[found.packet - block.first]
                yield replace(found, packet=packets)

    def rows(self, partitioner: Partitioner) -> Iterator[pa.RecordBatch]:
        """Read the part; all of it is handed on."""
        others: list[pa.RecordBatch] = []
        for found in self.segments(partitioner, others.append):
            yield from drain(others)
            yield from segment_rows(found, self.set, partitioner)
        yield from drain(others)


@dataclass(frozen=True, slots=True)
class Visit:
    """Connections (mixed, sorted) whose packets never move, and the parts that have some, in order.
    cut: whether they have more bytes than one task should make rows of.
    """

    ids: Hashes
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
    shuffled: Hashes | None = None

    def segments(
        self, partitioner: Partitioner, emit: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Give the segments of connections that lie here alone; hand on all else."""
        shuffled = self.shuffled
        assert shuffled is not None
        for part in self.parts:
            for found in part.segments(partitioner, emit):
                rest = found
                if len(shuffled):
                    leaves = is_among(shuffled, hashes(found, part.set))
                    if leaves.any():
                        leaving = take(found, np.flatnonzero(leaves))
                        for row in segment_rows(leaving, part.set, partitioner):
                            emit(row)
                        rest = take(found, np.flatnonzero(~leaves))
                if len(rest):
                    yield rest


def drain(rows: list[T]) -> Iterator[T]:
    """Give what was collected, and forget it."""
    yield from rows
    rows.clear()


def file_problems(problems: Iterable[CaptureError], links: Links) -> FileProblems:
    """Say what a split has to tell of its file."""
    plain, once = [], []
    for problem in problems:
        if isinstance(problem, UnsupportedLinkType):
            once.append((problem.reason, str(problem)))
        else:
            plain.append(str(problem))
    once += [
        (f"link type {link}", "".join(map(str, found_problems)))
        for link, found_problems in links.items()
        if found_problems
    ]
    return FileProblems(tuple(plain), tuple(once))


def split_fragments(block: PacketBlock) -> tuple[Segments, Ints]:
    """Parse a block but for fragments of IP datagrams; give the rows of those."""
    parser = PacketParser()
    found = parser.parse(block)
    if not _fragment_count(parser):
        return found, np.empty(0, np.int64)
    rows = np.array(_find_fragments(block, 0), np.int64)
    others = np.setdiff1d(np.arange(len(block)), rows)
    rest = PacketParser().parse(select(block, others))
    return replace(rest, packet=block.first + others[rest.packet - block.first]), rows


def select(block: PacketBlock, rows: Ints) -> PacketBlock:
    """Take packets; they are numbered on from the block's first."""
    columns = (block.ts, block.start, block.captured, block.original, block.link)
    return PacketBlock(block.data, block.position, block.first, *(each[rows] for each in columns))


def _fragment_count(parser: PacketParser) -> int:
    return sum(parser.passed_over[kind] for kind in FRAGMENTS)


def _find_fragments(block: PacketBlock, at: int) -> list[int]:
    """List the packets of a block that are fragments, by halves."""
    parser = PacketParser()
    parser.parse(block)
    if not _fragment_count(parser):
        return []
    if len(block) == 1:
        return [at]
    half = len(block) // 2
    return _find_fragments(block[:half], at) + _find_fragments(block[half:], at + half)


def note_links(block: PacketBlock, links: Links) -> None:
    """Note what is said of link types that are not read, where each stands first."""
    for link in np.unique(block.link).tolist():
        if link not in links:
            first = np.flatnonzero(block.link == link)[:1]
            parser = PacketParser()
            parser.parse(select(block, first))
            links[link] = tuple(parser.problems)


def reassemble_fragments(
    rows: Iterable[tuple[int, bytes]], sets: Sequence[int], partitioner: Partitioner
) -> Iterator[pa.RecordBatch]:
    """Put the datagrams of files together; what is given comes in packet order: first packet, body.
    sets: of each file.
    """
    parser, file = PacketParser(), -1
    for packet, body in rows:
        packet_file, _ = place_of(packet)
        if packet_file != file:
            parser, file = PacketParser(), packet_file
        block, numbers = fragments_in(body)
        found = parser.parse(block)
        found = replace(found, packet=numbers[found.packet - 1])
        for at in range(0, len(found), SEGMENTS_PER_ROW):
            yield from segment_rows(
                take(found, slice(at, at + SEGMENTS_PER_ROW)), sets[file], partitioner
            )
