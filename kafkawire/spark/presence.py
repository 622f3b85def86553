"""Which connections a stretch of a capture has, and which of them it has alone.

Law: a connection is decoded where it lies only if nowhere else in the set has a packet of it; that
is known, not guessed, before any is decoded. A number that two connections share makes both of
them move, which is right as well.

    split --headers alone--> Seen: numbers of connections, bytes of each; proof of the split
    Seen of all regions --numbers that several have--> what each region must hand on

A packet that is plainly TCP in IPv4 in Ethernet is numbered from its header; any other goes through
the parser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..capture.blocks import Ints, PacketBlock, take_rows
from .packets import Mixed, mixed, mixed_ends, settled
from .parts import apart, note_links, select, told
from .splitting import Proof, Split, read

ETHERNET: Final = 1
PLAIN: Final = np.dtype(
    {
        "names": ["type", "version", "fragment", "protocol", "source", "destination", "ports"],
        "formats": [">u2", "u1", ">u2", "u1", ">u4", ">u4", (">u2", 2)],
        "offsets": [12, 14, 20, 23, 26, 30, 34],
        "itemsize": 38,
    }
)
"""Ethernet, an IPv4 header without options, the ports of TCP."""

IPV4: Final = 0x0800
NO_OPTIONS: Final = 0x45
PIECE: Final = 0x3FFF
"""Bits that only a fragment has."""

TCP: Final = 6
MAPPED: Final = np.uint64(0xFFFF << 32)
"""Stands before an IPv4 address in its IPv6-mapped form."""

MOST: Final = 1 << 25
"""Connections that regions have, counted in each, beyond which nobody compares: all move."""


class Seen(NamedTuple):
    """What a split has. ids: numbers of its connections (mixed), sorted; sizes: about how many
    bytes each has; fragments: whether IP datagrams come in pieces; tells: whether something is to
    be said of the file.
    """

    proof: Proof
    ids: bytes
    sizes: bytes
    fragments: bool
    tells: bool


class Shares(NamedTuple):
    """What regions have alone, and not. moved: for each what it hands on, None where that is all;
    volumes: connections that move and have the most bytes, and how many.
    """

    moved: tuple[Mixed | None, ...]
    volumes: tuple[tuple[int, int], ...]


def look(one: tuple[Split, int]) -> Seen:
    """Look through a split of a set. Raises OSError where it cannot be read."""
    split, set = one
    reading = read(split)
    ids: list[Mixed] = [np.empty(0, np.uint64)]
    sizes: list[Ints] = [np.empty(0, np.int64)]
    links: dict[int, str] = {}
    fragments = False
    for block in reading:
        plain = _plain(block, set, ids, sizes)
        if not plain.all():
            rest = select(block, np.flatnonzero(~plain))
            note_links(rest, links)
            found, pieces = apart(rest)
            ids.append(mixed(found, set))
            sizes.append(found.captured)
            fragments |= len(pieces) > 0
    proof = reading.proof
    every, at = np.unique(np.concatenate(ids), return_inverse=True)
    volumes = np.bincount(at, np.concatenate(sizes), len(every)).astype(np.int64)
    tells = told(proof.problems, links)
    return Seen(proof, every.tobytes(), volumes.tobytes(), fragments, any(tells))


def _plain(
    block: PacketBlock, set: int, ids: list[Mixed], sizes: list[Ints]
) -> npt.NDArray[np.bool_]:
    """Number the packets that are plainly TCP; say which those are."""
    plain: npt.NDArray[np.bool_] = (block.link == ETHERNET) & (block.captured >= PLAIN.itemsize)
    heads = take_rows(block.data, block.start[plain], PLAIN)
    good = (heads["type"] == IPV4) & (heads["version"] == NO_OPTIONS) & (heads["protocol"] == TCP)
    good &= (heads["fragment"] & PIECE) == 0
    plain[plain] = good
    heads = heads[good]
    none = np.zeros(1, np.uint64)
    ends = [
        mixed_ends(none, heads[name].astype(np.uint64) | MAPPED, heads["ports"][:, at])
        for at, name in enumerate(("source", "destination"))
    ]
    ids.append(settled(ends[0] + ends[1], set))
    sizes.append(block.captured[plain])
    return plain


def shares(regions: Sequence[Sequence[Seen]], largest: int) -> Shares:
    """Compare what regions have. A region that has less than a quarter of its bytes alone hands on
    all of them, so that what it hands on never waits for what it decodes.
    """
    found = [_joined(region) for region in regions]
    several = _several([ids for ids, _ in found])
    # A fragment belongs to a connection that nobody has seen.
    pieces = any(seen.fragments for region in regions for seen in region)
    all_move = pieces or sum(len(ids) for ids, _ in found) > MOST
    moved: list[Mixed | None] = []
    leaving: list[tuple[Mixed, Ints]] = []
    for ids, sizes in found:
        leaves = np.isin(ids, several, assume_unique=True)
        whole = all_move or 4 * int(sizes[~leaves].sum()) < int(sizes.sum())
        moved.append(None if whole else ids[leaves])
        leaving.append((ids, sizes) if whole else (ids[leaves], sizes[leaves]))
    return Shares(tuple(moved), _largest(leaving, largest))


def _joined(region: Sequence[Seen]) -> tuple[Mixed, Ints]:
    ids = np.concatenate([np.frombuffer(seen.ids, np.uint64) for seen in region])
    sizes = np.concatenate([np.frombuffer(seen.sizes, np.int64) for seen in region])
    return _summed(ids, sizes)


def _summed(ids: Mixed, sizes: Ints) -> tuple[Mixed, Ints]:
    every, at = np.unique(ids, return_inverse=True)
    return every, np.bincount(at, sizes, len(every)).astype(np.int64)


def _several(each: Sequence[Mixed]) -> Mixed:
    """List what is in more than one."""
    every = np.sort(np.concatenate([np.empty(0, np.uint64), *each]))
    return np.unique(every[1:][every[1:] == every[:-1]])


def _largest(found: Sequence[tuple[Mixed, Ints]], count: int) -> tuple[tuple[int, int], ...]:
    ids, sizes = _summed(
        np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in found)]),
        np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in found)]),
    )
    top = np.argsort(-sizes, kind="stable")[:count]
    return tuple(zip(ids[top].tolist(), sizes[top].tolist(), strict=True))
