"""Reads the splits of one Spark task and makes rows of their packets.

The rows of a part depend only on its own packets. What needs neighbouring parts (IP fragments,
problems of the file) is passed on as rows of their own kind.

    split --> blocks --> segments --> rows by bucket of connections
                    `--> fragments, as captured --> rows by file --reassembled--> rows by bucket
                    `--> FileProblems, packets read so far ----> rows by file
"""

# over 300 lines: all that a part is read by

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from ...capture.files.blocks import PacketBlock
from ...capture.files.columns import Ints
from ...capture.multifile import file_and_packet, packet_id
from ...capture.packets.kinds import Kind
from ...capture.packets.parser import PacketParser
from ...capture.packets.segment_rows import SegmentRows
from ...capture.packets.segments import Segments
from ...capture.packets.undecoded import Count, Reason, Undecoded
from ...errors import CaptureError, UnsupportedLinkType
from ..errors import OutOfOrder
from ..shuffle.packets import (
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
from ..shuffle.packets import Kind as Rows
from ..splitting import Split, read
from .visited import column, select, visited_rows

T = TypeVar("T")

FRAGMENTS: Final = frozenset({Kind.FRAGMENT4, Kind.FRAGMENT6})

SEGMENTS_PER_ROW: Final = 1 << 10
"""Segments of reassembled datagrams in a row: segments that lie between them wait for the whole
row.
"""


Links: TypeAlias = dict[int, tuple[CaptureError, ...]]
"""Link type -> what is wrong with it, where it stands first."""


class FileProblems(NamedTuple):
    """Problems of a file that a part found.

    problems: what could not be read. once: problems that are reported once for a file although each
    part may find them (unsupported link types): key and text. undecoded: packets that were skipped,
    which are added up over the parts.
    """

    problems: tuple[str, ...] = ()
    once: tuple[tuple[str, str], ...] = ()
    undecoded: tuple[tuple[Reason, Count], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A split; the index of its file and of its set. packets: number of packets in the file."""

    file: int
    set: int
    split: Split
    packets: int = 0

    def segments(
        self, partitioner: Partitioner, emit: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Read the segments of the part; everything else is passed to `emit`.

        Raises OSError if the file cannot be read.
        """
        reading = read(self.split)
        links: Links = {}
        undecoded = Undecoded()
        for block in reading:
            first = packet_id(self.file, block.first)
            note_links(block, links)
            numbered, tunnels = replace(block, first=first), self.split.file.tunnels
            segments, fragments, not_decoded = split_fragments(numbered, tunnels)
            undecoded.merge(not_decoded.counts.items())
            if len(fragments):
                rows = select(block, fragments)
                emit(fragment_row(rows, first + fragments, partitioner.of_file(self.file)))
            if len(segments):
                yield segments
        found_problems = file_problems(reading.proof.problems, links)._replace(
            undecoded=(*undecoded.counts.items(),)
        )
        if any(found_problems):
            last = packet_id(self.file, self.packets)
            emit(
                row_of(
                    partitioner.of_file(self.file),
                    Rows.PROBLEMS,
                    last,
                    pickle.dumps(found_problems),
                )
            )

    def visited(self, ids: Hashes) -> Iterator[SegmentRows]:
        """Read only the segments of some connections (hashes, sorted).

        Most other packets are not parsed; the file has no IP fragments. Raises OSError if the file
        cannot be read.
        """
        for block in read(self.split).blocks():
            numbered = block.numbered(packet_id(self.file, block.first))
            visited = visited_rows(numbered, ids, self.set, self.split.file.tunnels)
            if len(visited):
                yield visited

    def rows(self, partitioner: Partitioner) -> Iterator[pa.RecordBatch]:
        """Read the part as rows to shuffle."""
        others: list[pa.RecordBatch] = []
        for segments in self.segments(partitioner, others.append):
            yield from drain(others)
            yield from segment_rows(segments, self.set, partitioner)
        yield from drain(others)


@dataclass(frozen=True, slots=True)
class Visit:
    """Connections (hashes, sorted) that are decoded in place by one task.

    parts: those that have their packets, in order. cut: whether the connections are too large for
    one task and are cut into chunks.
    """

    ids: Hashes
    parts: Sequence[Part]
    cut: bool

    def segments(self) -> Iterator[SegmentRows]:
        """Read the segments of the connections. Raises OutOfOrder, OSError."""
        last = -1
        for part in self.parts:
            for segments in part.visited(self.ids):
                packets = column(segments, "packet")
                falls = np.flatnonzero(np.diff(packets, prepend=last) <= 0)
                if len(falls):
                    raise OutOfOrder(Rows.SEGMENTS, int(packets[falls[0]]))
                last = int(packets[-1])
                yield segments


@dataclass(frozen=True, slots=True)
class Region:
    """Adjacent parts that one task reads.

    shuffled: connections (hashes, sorted) that are not decoded here: they also have packets in
    other regions, or are visited; None if all packets are shuffled.
    """

    parts: Sequence[Part]
    shuffled: Hashes | None = None

    def segments(
        self, partitioner: Partitioner, emit: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Segments]:
        """Read the segments of connections that lie in this region only.

        Everything else is passed to `emit`.
        """
        shuffled = self.shuffled
        assert shuffled is not None
        for part in self.parts:
            for segments in part.segments(partitioner, emit):
                rest = segments
                if len(shuffled):
                    is_shuffled = is_among(shuffled, hashes(segments, part.set))
                    if is_shuffled.any():
                        to_shuffle = take(segments, np.flatnonzero(is_shuffled))
                        for row in segment_rows(to_shuffle, part.set, partitioner):
                            emit(row)
                        rest = take(segments, np.flatnonzero(~is_shuffled))
                if len(rest):
                    yield rest


def drain(rows: list[T]) -> Iterator[T]:
    """Yield the collected rows and clear the list."""
    yield from rows
    rows.clear()


def file_problems(problems: Iterable[CaptureError], links: Links) -> FileProblems:
    """Collect the problems that a split found in its file."""
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


def split_fragments(
    block: PacketBlock, tunnels: tuple[str, ...] = ()
) -> tuple[Segments, Ints, Undecoded]:
    """Parse the packets of a block except IP fragments.

    Also returns the rows of the fragments, and the other packets that were not decoded.
    """
    parser = PacketParser(tunnels)
    segments = parser.parse(block)
    if not fragment_count(parser):
        return segments, np.empty(0, np.int64), parser.undecoded
    rows = np.array(_find_fragments(block, 0, tunnels), np.int64)
    others = np.setdiff1d(np.arange(len(block)), rows)
    parser = PacketParser(tunnels)
    rest = parser.parse(select(block, others))
    packets = block.first + others[rest.packet - block.first]
    return replace(rest, packet=packets), rows, parser.undecoded


def fragment_count(parser: PacketParser) -> int:
    """Return how many IP fragments a parser was given."""
    return sum(parser.skipped[kind] for kind in FRAGMENTS)


def _find_fragments(block: PacketBlock, first: int, tunnels: tuple[str, ...]) -> list[int]:
    """Find the packets of a block that are fragments, by bisection."""
    parser = PacketParser(tunnels)
    parser.parse(block)
    if not fragment_count(parser):
        return []
    if len(block) == 1:
        return [first]
    half = len(block) // 2
    return [
        *_find_fragments(block[:half], first, tunnels),
        *_find_fragments(block[half:], first + half, tunnels),
    ]


def note_links(block: PacketBlock, links: Links) -> None:
    """Record the problems of unsupported link types, each where it occurs first."""
    for link in np.unique(block.link).tolist():
        if link not in links:
            first = np.flatnonzero(block.link == link)[:1]
            parser = PacketParser()
            parser.parse(select(block, first))
            links[link] = tuple(parser.problems)


def reassemble_fragments(
    rows: Iterable[tuple[int, bytes]],
    sets: Sequence[int],
    partitioner: Partitioner,
    tunnels: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Reassemble the IP datagrams of files.

    rows: number of the first packet, and body, in packet order. sets: the set of each file.
    """
    parser, file, last = PacketParser(tunnels), -1, 0
    for packet, body in rows:
        packet_file, _ = file_and_packet(packet)
        if packet_file != file:
            yield from _undecoded_fragments(parser, file, last, partitioner)
            parser, file = PacketParser(tunnels), packet_file
        block, numbers = fragments_in(body)
        segments = parser.parse(block)
        segments = replace(segments, packet=numbers[segments.packet - 1])
        last = int(numbers[-1])
        for start in range(0, len(segments), SEGMENTS_PER_ROW):
            yield from segment_rows(
                take(segments, slice(start, start + SEGMENTS_PER_ROW)), sets[file], partitioner
            )
    yield from _undecoded_fragments(parser, file, last, partitioner)


def _undecoded_fragments(
    parser: PacketParser, file: int, last: int, partitioner: Partitioner
) -> Iterator[pa.RecordBatch]:
    """Report the fragments of a file that were not decoded. last: the last packet of them."""
    parser.finish()
    counts = (*parser.undecoded.counts.items(),)
    if counts:
        body = pickle.dumps(FileProblems(undecoded=counts))
        yield row_of(partitioner.of_file(file), Rows.PROBLEMS, last, body)
