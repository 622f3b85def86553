"""Decides where each connection is decoded.

A connection is decoded in its region only if no other region of the set has a packet of it.
This is known before anything is decoded. If two connections share a hash, both are shuffled, which
is correct as well.

    SplitIndexes of all regions --hashes in several regions--> what each region shuffles
                                        `--with many bytes--> read in place by a visit
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...capture.files.columns import Ints
from ..shuffle.packets import Hashes, is_among
from .index_columns import IndexColumns
from .split_index import MAX_CONNECTIONS

MAX_COMPARED: Final = 1 << 25
"""Connections, summed over the regions, above which they are not compared: all are shuffled."""

MAX_READ_RATIO: Final = 8
"""A connection is visited if the splits with its packets have at most so many times its bytes: that
costs less than a shuffle.
"""


SHUFFLE_COST: Final = 16
"""Shuffling a byte costs about as much as reading so many."""

DISTRIBUTED_BY_SIZE: Final = 1 << 10
"""Number of the largest connections that are distributed by size."""


class Sharing(NamedTuple):
    """Decides when a connection is too large for its task.

    chunk_bytes: bytes of messages in a chunk; buckets: whether the option `partitions` is set,
    which asks for a shuffle.
    """

    cores: int
    chunk_bytes: int
    buckets: bool = False

    def large(self, total: int) -> int:
        """Return the number of bytes from which on a connection gets a task of its own."""
        return max(total // (2 * self.cores), 2 * self.chunk_bytes)

    def too_large(self, total: int) -> int:
        """Return the number of bytes above which a connection is cut into chunks.

        Its task would take longer than everything else on the other cores.
        """
        return max(total // self.cores * 5 // 4, 2 * self.chunk_bytes)


class ConnectionSet(NamedTuple):
    """Connections that one task decodes by reading the splits that have packets of them.

    Connections are hashes, sorted. splits: indexes of these splits. size: bytes of the connections.
    """

    ids: Hashes
    size: int
    splits: Ints


class Placement(NamedTuple):
    """Where connections are decoded.

    shuffled: for each region the connections that are not decoded there: other regions have them,
    too, or they are visited; None if the region shuffles all of its packets. visits: the
    connections that are visited and never shuffled. large: shuffled connections with many bytes.
    shuffled_bytes: bytes of all shuffled connections.
    """

    shuffled: tuple[Hashes | None, ...]
    visits: tuple[ConnectionSet, ...]
    large: tuple[int, ...]
    shuffled_bytes: int


def place_connections(
    index: IndexColumns, regions: Sequence[tuple[int, int]], sharing: Sharing
) -> Placement:
    """Compare the connections of regions, ranges of splits, and decide where each is decoded.

    A region that could decode less than a quarter of its bytes in place shuffles all of them, so
    that the packets which it shuffles do not wait for its decoding.
    """
    summed = [_summed(*index.region(start, end)) for start, end in regions]
    duplicated = _shared_hashes([ids for ids, _ in summed])
    # The connection of a fragment is not known yet.
    shuffle_all = index.fragments or sum(len(ids) for ids, _ in summed) > MAX_COMPARED
    shared = [is_among(duplicated, ids) for ids, _ in summed]
    spanning, inner = (
        _joined_up(
            [(ids[mask], sizes[mask]) for (ids, sizes), mask in zip(summed, chosen, strict=True)]
        )
        for chosen in (shared, [~mask for mask in shared])
    )
    least = sharing.large(int(index.bytes.sum()))
    visits = [] if shuffle_all else _choose_visits(spanning, inner, sharing, index)
    visited = connection_ids(visits)
    shuffled: list[Hashes | None] = []
    shuffled_parts: list[tuple[Hashes, Ints]] = []
    for (ids, sizes), is_shared in zip(summed, shared, strict=True):
        is_shuffled = ~is_among(visited, ids)
        in_place = is_shuffled & ~is_shared
        shuffle_region = shuffle_all or 4 * int(sizes[in_place].sum()) < int(
            sizes[is_shuffled].sum()
        )
        shuffled.append(None if shuffle_region else ids[~in_place])
        is_shuffled &= shuffle_region | is_shared
        shuffled_parts.append((ids[is_shuffled], sizes[is_shuffled]))
    ids, sizes = _joined_up(shuffled_parts)
    large = (*ids[_largest(sizes, least)].tolist(),)
    return Placement((*shuffled,), (*visits,), large, int(sizes.sum()))


def unvisited(index: IndexColumns, visits: Sequence[ConnectionSet]) -> npt.NDArray[np.bool_]:
    """Return which splits have connections that are not visited, or problems to report."""
    left = index.sums(~is_among(connection_ids(visits), index.ids)) > 0
    return left | index.has_problems


class HasConnectionIds(Protocol):
    """Has connection hashes."""

    @property
    def ids(self) -> Hashes:
        """The hashes, sorted."""


def connection_ids(visits: Sequence[HasConnectionIds]) -> Hashes:
    """Return the connections of all visits, sorted."""
    return np.sort(np.concatenate([np.empty(0, np.uint64), *(group.ids for group in visits)]))


def _choose_visits(
    spanning: tuple[Hashes, Ints],
    inner: tuple[Hashes, Ints],
    sharing: Sharing,
    index: IndexColumns,
) -> list[ConnectionSet]:
    """Choose the connections that are visited, of those in several regions and those in one.

    Large ones are visited one by one; the others together, one set for each core, if reading
    everything once for each set costs less than shuffling. These also get the connections of one
    region, whose packets they read anyway, unless there are too many for every task to know.
    """
    ids, sizes = spanning
    total = int(index.bytes.sum())
    connection_sets = []
    rest = np.ones(len(ids), bool)
    for row in _largest(sizes, sharing.large(total)).tolist():
        group = _connection_set(ids[row : row + 1], int(sizes[row]), index)
        if int(index.bytes[group.splits].sum()) <= MAX_READ_RATIO * group.size:
            connection_sets.append(group)
            rest[row] = False
    ids, sizes = ids[rest], sizes[rest]
    if not sharing.buckets and sharing.cores * total <= SHUFFLE_COST * int(sizes.sum()):
        if len(inner[0]) <= MAX_CONNECTIONS:
            ids, sizes = _joined_up([(ids, sizes), inner])
        for members in _distribute(sizes, sharing.cores):
            connection_sets.append(_connection_set(ids[members], int(sizes[members].sum()), index))
    return connection_sets


def _distribute(sizes: Ints, count: int) -> list[Ints]:
    """Distribute connections so that each group has about the same number of bytes.

    Returns their indexes, sorted.
    """
    order = np.argsort(-sizes, kind="stable")
    member_lists: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, member_list) for member_list in range(count)]
    for member in order[:DISTRIBUTED_BY_SIZE].tolist():
        assigned, member_list = heap[0]
        member_lists[member_list].append(member)
        heapreplace(heap, (assigned + int(sizes[member]), member_list))
    rest = order[DISTRIBUTED_BY_SIZE:]
    distributed = [
        np.sort(np.append(member_list, rest[start::count]).astype(np.int64))
        for start, member_list in enumerate(member_lists)
    ]
    return [members for members in distributed if len(members)]


def _connection_set(ids: Hashes, size: int, index: IndexColumns) -> ConnectionSet:
    return ConnectionSet(ids, size, index.splits_with(ids))


def _largest(sizes: Ints, least: int) -> Ints:
    """Return the indexes of sizes of at least `least`, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    return order[sizes[order] >= least]


def _joined_up(each: Sequence[tuple[Hashes, Ints]]) -> tuple[Hashes, Ints]:
    ids = np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in each)])
    return _summed(ids, np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in each)]))


def _summed(ids: Hashes, sizes: Ints) -> tuple[Hashes, Ints]:
    """Sum the sizes of equal hashes; the hashes are then sorted and unique."""
    order = np.argsort(ids)
    ordered = ids[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    return ordered[starts], np.add.reduceat(sizes[order], starts)


def _shared_hashes(each: Sequence[Hashes]) -> Hashes:
    """Return the hashes that are in more than one list."""
    every = np.sort(np.concatenate([np.empty(0, np.uint64), *each]))
    return np.unique(every[1:][every[1:] == every[:-1]])
