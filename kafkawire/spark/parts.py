"""What one Spark task reads: a split of a file of the set, and the rows it makes of its packets.

Law: a part's rows depend on nothing but its packets; what needs its neighbours (fragments of IP
datagrams, what is wrong with the file) goes on as rows that say so.

    split --> blocks --> segments --> rows by connection
                    `--> fragments, as captured --> rows by file --joined--> rows by connection
                    `--> Notice: problems, how far it read ----> rows by file
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..capture.blocks import Ints, PacketBlock
from ..capture.headers import Kind
from ..capture.packets import PacketParser, Segments
from ..capture.tables.traffic import FILE_BITS, numbered, place_of
from ..errors import CaptureError, UnsupportedLinkType
from .packets import fragment_rows, fragments_in, notice_row, segment_rows
from .splitting import Split, read

FRAGMENTS: Final = frozenset({Kind.FRAGMENT4, Kind.FRAGMENT6})


class Notice(NamedTuple):
    """What a part tells about its file.

    problems: what could not be read. once: what a file says once, though each of its parts may:
    link types that are not read, by what tells them apart.
    """

    problems: tuple[str, ...] = ()
    once: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A split, its file by its place among all, and the set that is of."""

    file: int
    set: int
    split: Split

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Read the part. Raises OSError where it cannot be read."""
        reading = read(self.split)
        last = numbered(self.file, (self.split.first or 1) - 1)
        links: dict[int, str] = {}
        for block in reading:
            first = numbered(self.file, block.first)
            last = first + len(block) - 1
            _note_links(block, links)
            found, pieces = apart(replace(block, first=first))
            if len(pieces):
                rows = select(block, pieces)
                yield fragment_rows(rows, first + pieces, self.file)
            if len(found):
                yield segment_rows(found, self.set)
        told = _told(reading.proof.problems, links)
        if told != Notice():
            yield notice_row(self.file, last, pickle.dumps(told))


def _told(problems: Iterable[CaptureError], links: dict[int, str]) -> Notice:
    plain, once = [], []
    for problem in problems:
        if isinstance(problem, UnsupportedLinkType):
            once.append((problem.reason, str(problem)))
        else:
            plain.append(str(problem))
    once += [(f"link type {link}", said) for link, said in links.items() if said]
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
    return sum(parser.passed_over[kind] for kind in FRAGMENTS)


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


def _note_links(block: PacketBlock, links: dict[int, str]) -> None:
    """Note what is said of link types that are not read, where each stands first."""
    for link in np.unique(block.link).tolist():
        if link not in links:
            first = np.flatnonzero(block.link == link)[:1]
            parser = PacketParser()
            parser.parse(select(block, first))
            links[link] = "".join(map(str, parser.problems))


def join_fragments(
    batches: Iterable[pa.RecordBatch], sets: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Put the datagrams of files together; the rows of a file come together, in packet order. sets:
    of each file.
    """
    parser, file = PacketParser(), -1
    for batch in batches:
        if not len(batch):
            continue
        numbers = batch.column("packet").to_numpy()
        files = numbers >> FILE_BITS
        cuts = np.flatnonzero(np.diff(files)) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(batch)], strict=True):
            mine, _ = place_of(int(numbers[start]))
            if mine != file:
                parser, file = PacketParser(), mine
            found = parser.parse(fragments_in(batch.slice(start, end - start)))
            if len(found):
                found = replace(found, packet=numbers[start:end][found.packet - 1])
                yield segment_rows(found, sets[file])
