"""Which connections a stretch of a capture has, and which of them it has alone.

Law: a connection is decoded where it lies only if nowhere else in the set has a packet of it; that
is known, not guessed, before any is decoded. A number that two connections share makes both of
them move, which is right as well.

    split --headers alone--> SplitIndex: numbers of connections, bytes of each; proof of the split
    SplitIndex of all regions --numbers that several have--> what each region must hand on
                                           `--with many bytes--> visited where they lie
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace
from typing import Final, NamedTuple, Protocol

import numpy as np

from ...capture.files.blocks import Ints
from ...errors import CaptureError
from ..decode.packets import Hashes, hashes, is_among
from ..decode.plain import header_hashes
from ..splitting import Proof, Split, read
from .parts import Links, file_problems, note_links, select, split_fragments

MAX_COMPARED: Final = 1 << 25
"""Connections that regions have, counted in each, beyond which nobody compares: all move."""

MAX_READ_RATIO: Final = 8
"""Times the bytes of a connection that may be read for it alone: it costs less than moving it."""


SHUFFLE_COST: Final = 16
"""Times the bytes that move that may be read instead: that is what Spark takes for them."""

DISTRIBUTED_BY_SIZE: Final = 1 << 10
"""Connections, the largest ones, that are dealt out by size."""


class Sharing(NamedTuple):
    """Says what is much for one task. chunk_bytes: of messages that are worth a chunk; buckets:
    whether it was said in how many what moves is decoded, so that it is to move.
    """

    cores: int
    chunk_bytes: int
    buckets: bool = False

    def large(self, total: int) -> int:
        """Say from how many bytes on a connection has a task of its own."""
        return max(total // (2 * self.cores), 2 * self.chunk_bytes)

    def too_large(self, total: int) -> int:
        """Say beyond how many it is cut: where it takes longer than all else on the other cores."""
        return max(total // self.cores * 5 // 4, 2 * self.chunk_bytes)


class SplitIndex(NamedTuple):
    """What a split has. ids: numbers of its connections (mixed), sorted; sizes: about how many
    bytes each has; fragments: whether IP datagrams come in pieces; links: problems with link types;
    tells: whether something is to be said of the file.
    """

    proof: Proof
    ids: bytes
    sizes: bytes
    fragments: bool
    links: tuple[CaptureError, ...]
    has_problems: bool

    @property
    def bytes(self) -> int:
        """How many bytes its packets have."""
        return int(np.frombuffer(self.sizes, np.int64).sum())

    @property
    def numbers(self) -> Hashes:
        """Numbers of its connections."""
        return np.frombuffer(self.ids, np.uint64)


class ConnectionSet(NamedTuple):
    """Connections (mixed, sorted) that one task decodes, which visits the splits that have packets
    of them: those, by their place among all. size: bytes of the connections.
    """

    ids: Hashes
    size: int
    splits: tuple[int, ...]


class Placement(NamedTuple):
    """What regions have alone, and not. moved: for each the connections that others have, too; None
    where it hands on all. herds: those that are visited, and so in nothing that is handed on;
    large: those that are handed on and have many bytes. handed: bytes of all that are.
    """

    shuffled: tuple[Hashes | None, ...]
    visits: tuple[ConnectionSet, ...]
    large: tuple[int, ...]
    shuffled_bytes: int


def index_split(one: tuple[Split, int]) -> SplitIndex:
    """Look through a split of a set. Raises OSError where it cannot be read."""
    split, set = one
    reading = read(split)
    ids: list[Hashes] = [np.empty(0, np.uint64)]
    sizes: list[Ints] = [np.empty(0, np.int64)]
    links: Links = {}
    fragments = False
    for block in reading:
        plain, numbers = header_hashes(block, set)
        ids.append(numbers)
        sizes.append(block.captured[plain])
        if not plain.all():
            rest = select(block, np.flatnonzero(~plain))
            note_links(rest, links)
            found, pieces = split_fragments(rest)
            ids.append(hashes(found, set))
            sizes.append(found.captured)
            fragments |= len(pieces) > 0
    proof = reading.proof
    every, volumes = _summed(np.concatenate(ids), np.concatenate(sizes))
    has_problems = file_problems(proof.problems, links)
    unread = tuple(problem for problems in links.values() for problem in problems)
    return SplitIndex(
        proof, every.tobytes(), volumes.tobytes(), fragments, unread, any(has_problems)
    )


def place_connections(regions: Sequence[Sequence[SplitIndex]], sharing: Sharing) -> Placement:
    """Compare what regions have.

    Of what it could hand on, a region that has less than a quarter alone hands on all, so that what
    it hands on never waits for what it decodes.
    """
    found = [_joined(region) for region in regions]
    duplicated = _shared_hashes([ids for ids, _ in found])
    # A fragment belongs to a connection that nobody has seen.
    pieces = any(index.fragments for region in regions for index in region)
    all_move = pieces or sum(len(ids) for ids, _ in found) > MAX_COMPARED
    shared = [is_among(duplicated, ids) for ids, _ in found]
    by_region = [(ids[at], sizes[at]) for (ids, sizes), at in zip(found, shared, strict=True)]
    splits = [index for region in regions for index in region]
    least = sharing.large(sum(index.bytes for index in splits))
    visits = [] if all_move else _choose_visits(*_joined_up(by_region), sharing, splits)
    visited = connection_ids(visits)
    shuffled: list[Hashes | None] = []
    leaving: list[tuple[Hashes, Ints]] = []
    for (ids, sizes), leaves in zip(found, shared, strict=True):
        goes = ~is_among(visited, ids)
        whole = all_move or 4 * int(sizes[~leaves].sum()) < int(sizes[goes].sum())
        shuffled.append(None if whole else ids[leaves])
        goes &= whole | leaves
        leaving.append((ids[goes], sizes[goes]))
    ids, sizes = _joined_up(leaving)
    large = (*ids[_largest(sizes, least)].tolist(),)
    return Placement((*shuffled,), (*visits,), large, int(sizes.sum()))


class HasConnectionIds(Protocol):
    """Some connections (mixed)."""

    @property
    def ids(self) -> Hashes:
        """Their numbers, sorted."""


def connection_ids(visits: Sequence[HasConnectionIds]) -> Hashes:
    """List the connections of herds, sorted."""
    return np.sort(np.concatenate([np.empty(0, np.uint64), *(group.ids for group in visits)]))


def _choose_visits(
    ids: Hashes, sizes: Ints, sharing: Sharing, splits: Sequence[SplitIndex]
) -> list[ConnectionSet]:
    """Choose the connections that are visited: large ones, one by one; and the others together, a
    herd for each core, where reading all for each of them costs less than moving theirs.
    """
    total = sum(index.bytes for index in splits)
    found = []
    rest = np.ones(len(ids), bool)
    for at in _largest(sizes, sharing.large(total)).tolist():
        group = _connection_set(ids[at : at + 1], int(sizes[at]), splits)
        if sum(splits[each].bytes for each in group.splits) <= MAX_READ_RATIO * group.size:
            found.append(group)
            rest[at] = False
    ids, sizes = ids[rest], sizes[rest]
    if not sharing.buckets and sharing.cores * total <= SHUFFLE_COST * int(sizes.sum()):
        for members in _distribute(sizes, sharing.cores):
            found.append(_connection_set(ids[members], int(sizes[members].sum()), splits))
    return found


def _distribute(sizes: Ints, count: int) -> list[Ints]:
    """Deal connections out, so that each gets about as many bytes; gives their places, sorted."""
    order = np.argsort(-sizes, kind="stable")
    member_lists: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, member_list) for member_list in range(count)]
    for at in order[:DISTRIBUTED_BY_SIZE].tolist():
        held, member_list = heap[0]
        member_lists[member_list].append(at)
        heapreplace(heap, (held + int(sizes[at]), member_list))
    rest = order[DISTRIBUTED_BY_SIZE:]
    dealt = [
        np.sort(np.append(member_list, rest[at::count]).astype(np.int64))
        for at, member_list in enumerate(member_lists)
    ]
    return [members for members in dealt if len(members)]


def _connection_set(ids: Hashes, size: int, splits: Sequence[SplitIndex]) -> ConnectionSet:
    places = [at for at, index in enumerate(splits) if is_among(index.numbers, ids).any()]
    return ConnectionSet(ids, size, (*places,))


def _largest(sizes: Ints, least: int) -> Ints:
    """Give the places of those of at least that size, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    return order[sizes[order] >= least]


def _joined(region: Sequence[SplitIndex]) -> tuple[Hashes, Ints]:
    return _joined_up([(index.numbers, np.frombuffer(index.sizes, np.int64)) for index in region])


def _joined_up(each: Sequence[tuple[Hashes, Ints]]) -> tuple[Hashes, Ints]:
    ids = np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in each)])
    return _summed(ids, np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in each)]))


def _summed(ids: Hashes, sizes: Ints) -> tuple[Hashes, Ints]:
    """Sum sizes up by number; numbers are sorted then, each once."""
    order = np.argsort(ids)
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    return ordered[starts], np.add.reduceat(sizes[order], starts)


def _shared_hashes(each: Sequence[Hashes]) -> Hashes:
    """List what is in more than one."""
    every = np.sort(np.concatenate([np.empty(0, np.uint64), *each]))
    return np.unique(every[1:][every[1:] == every[:-1]])
