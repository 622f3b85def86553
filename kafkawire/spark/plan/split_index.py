"""Indexes the connections of a split by the headers of its packets.

Law: the connections are those of the parsed segments; most packets are not parsed.

    split --headers only--> SplitIndex: connection hashes, bytes and first packet of each; the proof
    SplitIndexes of all splits --no connection opened again--> first packets of all connections
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...capture.files.columns import Ints
from ...capture.multifile import packet_id
from ...capture.packets.segment_rows import ACK, SYN
from ...errors import CaptureError
from ..shuffle.header_hashes import header_sums, plain_headers
from ..shuffle.packets import Hashes, finish_hashes, hashes
from ..splitting import Proof, Split, read
from .parts import Links, Part, file_problems, note_links, select, split_fragments

MAX_CONNECTIONS: Final = 1 << 17
"""Connections of which the plan keeps the first packets: every task gets them."""

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


class Packets(NamedTuple):
    """The packets of a split that are TCP segments, as columns.

    ids: hashes of their connections; rows: counted from the first packet of the split; syn: whether
    they are SYNs without ACK.
    """

    ids: Hashes
    sizes: Ints
    rows: Ints
    syn: npt.NDArray[np.bool_]


def index_split(one: tuple[Split, int]) -> SplitIndex:
    """Index a split of a set. Raises OSError if it cannot be read."""
    split, set = one
    reading = read(split)
    found = [Packets(*(np.empty(0, kind) for kind in (np.uint64, np.int64, np.int64, bool)))]
    links: Links = {}
    fragments = False
    row = 0
    for block in reading:
        plain, heads = plain_headers(block)
        ids = finish_hashes(header_sums(heads), set)
        rows = np.arange(row, row + len(block))
        found.append(Packets(ids, block.captured[plain], rows[plain], is_syn(heads["flags"])))
        if not plain.all():
            others = np.flatnonzero(~plain)
            rest = select(block, others)
            note_links(rest, links)
            parsed, pieces = split_fragments(rest)
            rest_rows = rows[others[parsed.packet - block.first]]
            syn = is_syn(parsed.flags)
            found.append(Packets(hashes(parsed, set), parsed.captured, rest_rows, syn))
            fragments |= len(pieces) > 0
        row += len(block)
    return _index_of(
        reading.proof,
        Packets(*map(np.concatenate, zip(*found, strict=True))),
        links,
        fragments=fragments,
    )


def is_syn(flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which segments ask for a connection: SYN without ACK."""
    found: npt.NDArray[np.bool_] = flags & (SYN | ACK) == SYN
    return found


def _index_of(proof: Proof, packets: Packets, links: Links, *, fragments: bool) -> SplitIndex:
    order = np.argsort(packets.ids)
    ids, syn = packets.ids[order], packets.syn[order]
    starts = np.flatnonzero(np.diff(ids, prepend=~ids[:1]))
    # The least of these has the first packet, and is even if that is a SYN.
    first = np.minimum.reduceat(packets.rows[order] * 2 + ~syn, starts)
    with_syn = first % 2 == 0
    problems = file_problems(proof.problems, links)
    return SplitIndex(
        proof,
        ids[starts].tobytes(),
        np.add.reduceat(packets.sizes[order], starts).tobytes(),
        (first // 2).astype(np.int32).tobytes(),
        with_syn.tobytes(),
        int(syn.sum()) > int(with_syn.sum()),
        fragments,
        tuple(problem for found in links.values() for problem in found),
        any(problems),
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
    found = np.sort(packets[order][is_first])
    return found if len(found) <= MAX_CONNECTIONS else None
