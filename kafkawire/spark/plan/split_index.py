"""Indexes the connections of a split by the headers of its packets.

The connections are those of the parsed segments; most packets are not parsed.

    split --headers only--> SplitIndex: connection hashes, bytes and first packet of each; the proof
    SplitIndexes of all splits --no connection opened again--> first packets of all connections
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ...capture.files.blocks import Block
from ...capture.files.columns import Ints, Octets
from ...capture.files.packet_headers import PcapBlock
from ...capture.multifile import packet_id
from ...errors import CaptureError
from ..shuffle.header_hashes import ETHERNET, header_sums, is_syn, plain_headers
from ..shuffle.packets import Hashes, finish_hashes, hashes
from ..shuffle.plain_packets import sum_connections
from ..splitting import Proof, Split, read
from .parts import Links, Part, file_problems, note_links, split_fragments
from .visited import header_places, select

MAX_CONNECTIONS: Final = 1 << 17
"""Connections of which the plan keeps the first packets, or that visits take from regions: every
task gets them.
"""

MAX_ENTRIES: Final = 1 << 22
"""Connections of all splits together, of which first packets are looked for."""


class SplitIndex(NamedTuple):
    """The connections of a split.

    ids: their hashes, sorted; sizes: the approximate bytes of each; begins: the first packet of
    each (int32), counted from that of the split; begin_with_syn: whether that is a SYN. reopened:
    whether one has a SYN behind its first packet. fragments: whether there are IP fragments; links:
    problems with link types; has_problems: whether there are problems to report for the file.
    """

    proof: Proof
    ids: bytes
    sizes: bytes
    begins: bytes
    begin_with_syn: bytes
    reopened: bool
    fragments: bool
    links: tuple[CaptureError, ...]
    has_problems: bool

    @property
    def hashes(self) -> Hashes:
        """The hashes of its connections."""
        return np.frombuffer(self.ids, np.uint64)

    @property
    def volumes(self) -> Ints:
        """The bytes of its connections."""
        return np.frombuffer(self.sizes, np.int64)


class Sums(NamedTuple):
    """Sums of packets of connections, as columns; a connection may have several.

    ids: hashes of connections. first: twice the first packet, counted from that of the split; plus
    1 unless it is a SYN. syns: number of SYNs without ACK.
    """

    ids: Hashes
    sizes: Ints
    first: Ints
    syns: Ints


NO_SUMS: Final = Sums(np.empty(0, np.uint64), *(np.empty(0, np.int64) for _ in range(3)))


def packet_sums(ids: Hashes, sizes: Ints, rows: Ints, flags: Octets | Ints) -> Sums:
    """Return the sums of single packets."""
    syn = is_syn(flags)
    return Sums(ids, sizes, 2 * rows + ~syn, syn.astype(np.int64))


def plain_sums(block: Block, set: int, row: int) -> tuple[Sums, Ints]:
    """Sum the plain packets of a block; also returns the others. row: of the first packet."""
    if not isinstance(block, PcapBlock):
        columns = block.columns()
        plain, heads = plain_headers(columns)
        ids, rows = finish_hashes(header_sums(heads), set), row + np.flatnonzero(plain)
        sums = packet_sums(ids, columns.captured[plain], rows, heads["flags"])
        return sums, np.flatnonzero(~plain)
    if block.link != ETHERNET:
        return NO_SUMS, np.arange(len(block))
    summed, others = sum_connections(*header_places(block), set)
    hashed, sizes, first, syns = np.frombuffer(summed, np.int64).reshape(-1, len(Sums._fields)).T
    sums = Sums(hashed.view(np.uint64), sizes, first + 2 * row, syns)
    return sums, np.frombuffer(others, np.int64)


def index_split(one: tuple[Split, int]) -> SplitIndex:
    """Index a split of a set. Raises OSError if it cannot be read."""
    split, set = one
    reading = read(split)
    all_sums = [NO_SUMS]
    links: Links = {}
    fragments = undecoded = False
    row = 0
    for block in reading.blocks():
        sums, others = plain_sums(block, set, row)
        all_sums.append(sums)
        if len(others):
            rest = select(block.columns(), others)
            note_links(rest, links)
            parsed, pieces, found_undecoded = split_fragments(rest, split.file.tunnels)
            undecoded |= bool(found_undecoded.counts)
            rows = row + others[parsed.packet - block.first]
            all_sums.append(packet_sums(hashes(parsed, set), parsed.captured, rows, parsed.flags))
            fragments |= len(pieces) > 0
        row += len(block)
    return _index_of(
        reading.proof,
        Sums(*map(np.concatenate, zip(*all_sums, strict=True))),
        links,
        fragments=fragments,
        undecoded=undecoded,
    )


def _index_of(
    proof: Proof, sums: Sums, links: Links, *, fragments: bool, undecoded: bool
) -> SplitIndex:
    order = np.argsort(sums.ids)
    ids = sums.ids[order]
    starts = np.flatnonzero(np.diff(ids, prepend=~ids[:1]))
    # The least of these has the first packet, and is even if that is a SYN.
    first = np.minimum.reduceat(sums.first[order], starts)
    with_syn = first % 2 == 0
    problems = file_problems(proof.problems, links)
    return SplitIndex(
        proof,
        ids[starts].tobytes(),
        np.add.reduceat(sums.sizes[order], starts).tobytes(),
        (first // 2).astype(np.int32).tobytes(),
        with_syn.tobytes(),
        int(sums.syns.sum()) > int(with_syn.sum()),
        fragments,
        tuple(problem for by_reason in links.values() for problem in by_reason),
        undecoded or any(problems),
    )


def first_packets(parts: Sequence[Part], indexes: Sequence[SplitIndex]) -> Ints | None:
    """Return the first packets of all connections, in order.

    Returns None if a connection may have been opened again, between the same ports: then this is
    known only once the connections are reassembled; or if there are more than MAX_CONNECTIONS.
    indexes: those of the parts.
    """
    if sum(len(index.begin_with_syn) for index in indexes) > MAX_ENTRIES:
        return None
    ids, first, syn = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, bool)]
    for part, index in zip(parts, indexes, strict=True):
        if index.reopened or part.split.first is None:
            return None
        begins = np.frombuffer(index.begins, np.int32).astype(np.int64)
        ids.append(index.hashes)
        first.append(packet_id(part.file, part.split.first) + begins)
        syn.append(np.frombuffer(index.begin_with_syn, bool))
    every, packets = np.concatenate(ids), np.concatenate(first)
    order = np.lexsort((packets, every))
    is_first = np.diff(every[order], prepend=~every[order[:1]]) != 0
    if np.concatenate(syn)[order][~is_first].any():
        return None
    earliest = np.sort(packets[order][is_first])
    return earliest if len(earliest) <= MAX_CONNECTIONS else None
