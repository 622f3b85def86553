"""Which connections a stretch of a capture has, and which of them it has alone.

Law: a connection is decoded where it lies only if nowhere else in the set has a packet of it; that
is known, not guessed, before any is decoded. A number that two connections share makes both of
them move, which is right as well.

    split --headers alone--> Seen: numbers of connections, bytes of each; proof of the split
    Seen of all regions --numbers that several have--> what each region must hand on
                                           `--with many bytes--> visited where they lie
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace
from typing import Final, NamedTuple, Protocol

import numpy as np

from ...capture.files.blocks import Ints
from ...errors import CaptureError
from ..decode.packets import Mixed, is_among, mixed
from ..decode.plain import numbered_plainly
from ..splitting import Proof, Split, read
from .parts import Links, apart, note_links, select, told

MOST: Final = 1 << 25
"""Connections that regions have, counted in each, beyond which nobody compares: all move."""

DENSE: Final = 8
"""Times the bytes of a connection that may be read for it alone: it costs less than moving it."""


MOVES: Final = 16
"""Times the bytes that move that may be read instead: that is what Spark takes for them."""

DEALT: Final = 1 << 10
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


class Seen(NamedTuple):
    """What a split has. ids: numbers of its connections (mixed), sorted; sizes: about how many
    bytes each has; fragments: whether IP datagrams come in pieces; links: problems with link types;
    tells: whether something is to be said of the file.
    """

    proof: Proof
    ids: bytes
    sizes: bytes
    fragments: bool
    links: tuple[CaptureError, ...]
    tells: bool

    @property
    def bytes(self) -> int:
        """How many bytes its packets have."""
        return int(np.frombuffer(self.sizes, np.int64).sum())

    @property
    def numbers(self) -> Mixed:
        """Numbers of its connections."""
        return np.frombuffer(self.ids, np.uint64)


class ConnectionSet(NamedTuple):
    """Connections (mixed, sorted) that one task decodes, which visits the splits that have packets
    of them: those, by their place among all. size: bytes of the connections.
    """

    ids: Mixed
    size: int
    splits: tuple[int, ...]


class Shares(NamedTuple):
    """What regions have alone, and not. moved: for each the connections that others have, too; None
    where it hands on all. herds: those that are visited, and so in nothing that is handed on;
    large: those that are handed on and have many bytes. handed: bytes of all that are.
    """

    moved: tuple[Mixed | None, ...]
    herds: tuple[ConnectionSet, ...]
    large: tuple[int, ...]
    handed: int


def look(one: tuple[Split, int]) -> Seen:
    """Look through a split of a set. Raises OSError where it cannot be read."""
    split, set = one
    reading = read(split)
    ids: list[Mixed] = [np.empty(0, np.uint64)]
    sizes: list[Ints] = [np.empty(0, np.int64)]
    links: Links = {}
    fragments = False
    for block in reading:
        plain, numbers = numbered_plainly(block, set)
        ids.append(numbers)
        sizes.append(block.captured[plain])
        if not plain.all():
            rest = select(block, np.flatnonzero(~plain))
            note_links(rest, links)
            found, pieces = apart(rest)
            ids.append(mixed(found, set))
            sizes.append(found.captured)
            fragments |= len(pieces) > 0
    proof = reading.proof
    every, volumes = _summed(np.concatenate(ids), np.concatenate(sizes))
    tells = told(proof.problems, links)
    unread = tuple(problem for problems in links.values() for problem in problems)
    return Seen(proof, every.tobytes(), volumes.tobytes(), fragments, unread, any(tells))


def shares(regions: Sequence[Sequence[Seen]], sharing: Sharing) -> Shares:
    """Compare what regions have.

    Of what it could hand on, a region that has less than a quarter alone hands on all, so that what
    it hands on never waits for what it decodes.
    """
    found = [_joined(region) for region in regions]
    several = _several([ids for ids, _ in found])
    # A fragment belongs to a connection that nobody has seen.
    pieces = any(seen.fragments for region in regions for seen in region)
    all_move = pieces or sum(len(ids) for ids, _ in found) > MOST
    shared = [is_among(several, ids) for ids, _ in found]
    parted = [(ids[at], sizes[at]) for (ids, sizes), at in zip(found, shared, strict=True)]
    splits = [seen for region in regions for seen in region]
    least = sharing.large(sum(seen.bytes for seen in splits))
    herds = [] if all_move else _herds(*_joined_up(parted), sharing, splits)
    visited = in_herds(herds)
    moved: list[Mixed | None] = []
    leaving: list[tuple[Mixed, Ints]] = []
    for (ids, sizes), leaves in zip(found, shared, strict=True):
        goes = ~is_among(visited, ids)
        whole = all_move or 4 * int(sizes[~leaves].sum()) < int(sizes[goes].sum())
        moved.append(None if whole else ids[leaves])
        goes &= whole | leaves
        leaving.append((ids[goes], sizes[goes]))
    ids, sizes = _joined_up(leaving)
    large = (*ids[_largest(sizes, least)].tolist(),)
    return Shares((*moved,), (*herds,), large, int(sizes.sum()))


class Some(Protocol):
    """Some connections (mixed)."""

    @property
    def ids(self) -> Mixed:
        """Their numbers, sorted."""


def in_herds(herds: Sequence[Some]) -> Mixed:
    """List the connections of herds, sorted."""
    return np.sort(np.concatenate([np.empty(0, np.uint64), *(herd.ids for herd in herds)]))


def _herds(
    ids: Mixed, sizes: Ints, sharing: Sharing, splits: Sequence[Seen]
) -> list[ConnectionSet]:
    """Choose the connections that are visited: large ones, one by one; and the others together, a
    herd for each core, where reading all for each of them costs less than moving theirs.
    """
    total = sum(seen.bytes for seen in splits)
    found = []
    rest = np.ones(len(ids), bool)
    for at in _largest(sizes, sharing.large(total)).tolist():
        herd = _herd(ids[at : at + 1], int(sizes[at]), splits)
        if sum(splits[each].bytes for each in herd.splits) <= DENSE * herd.size:
            found.append(herd)
            rest[at] = False
    ids, sizes = ids[rest], sizes[rest]
    if not sharing.buckets and sharing.cores * total <= MOVES * int(sizes.sum()):
        for mine in _dealt(sizes, sharing.cores):
            found.append(_herd(ids[mine], int(sizes[mine].sum()), splits))
    return found


def _dealt(sizes: Ints, count: int) -> list[Ints]:
    """Deal connections out, so that each gets about as many bytes; gives their places, sorted."""
    order = np.argsort(-sizes, kind="stable")
    hands: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, hand) for hand in range(count)]
    for at in order[:DEALT].tolist():
        held, hand = heap[0]
        hands[hand].append(at)
        heapreplace(heap, (held + int(sizes[at]), hand))
    rest = order[DEALT:]
    dealt = [
        np.sort(np.append(hand, rest[at::count]).astype(np.int64)) for at, hand in enumerate(hands)
    ]
    return [mine for mine in dealt if len(mine)]


def _herd(ids: Mixed, size: int, splits: Sequence[Seen]) -> ConnectionSet:
    places = [at for at, seen in enumerate(splits) if is_among(seen.numbers, ids).any()]
    return ConnectionSet(ids, size, (*places,))


def _largest(sizes: Ints, least: int) -> Ints:
    """Give the places of those of at least that size, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    return order[sizes[order] >= least]


def _joined(region: Sequence[Seen]) -> tuple[Mixed, Ints]:
    return _joined_up([(seen.numbers, np.frombuffer(seen.sizes, np.int64)) for seen in region])


def _joined_up(each: Sequence[tuple[Mixed, Ints]]) -> tuple[Mixed, Ints]:
    ids = np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in each)])
    return _summed(ids, np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in each)]))


def _summed(ids: Mixed, sizes: Ints) -> tuple[Mixed, Ints]:
    """Sum sizes up by number; numbers are sorted then, each once."""
    order = np.argsort(ids)
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    return ordered[starts], np.add.reduceat(sizes[order], starts)


def _several(each: Sequence[Mixed]) -> Mixed:
    """List what is in more than one."""
    every = np.sort(np.concatenate([np.empty(0, np.uint64), *each]))
    return np.unique(every[1:][every[1:] == every[:-1]])
