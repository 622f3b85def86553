"""Segments of a block sorted by connection and direction, without a loop.

Law: grouping is exact. A hash sorts, the endpoints themselves are compared; where two connections
share a hash, the slower way by the whole key is taken.

    order    segment indices: connection by connection, side by side, each in packet order
    flows    where in `order` each direction begins          units    where each connection begins
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .blocks import Ints
from .packets import Segments

Words: TypeAlias = npt.NDArray[np.uint64]

_K1: Final = np.uint64(0x9E3779B97F4A7C15)
_K2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_K3: Final = np.uint64(0x165667B19E3779F9)
_SHIFT: Final = np.uint64(29)
_INDEX_BITS: Final = 16

KEY: Final = np.dtype(
    [
        ("source_high", "u8"),
        ("source_low", "u8"),
        ("source_port", "u2"),
        ("destination_high", "u8"),
        ("destination_low", "u8"),
        ("destination_port", "u2"),
    ]
)
"""What tells one direction of a connection from all others."""


class Groups(NamedTuple):
    """See the module."""

    order: Ints
    flows: Ints
    units: Ints


def group(segments: Segments) -> Groups:
    """Sort the segments of a block, of at most 65536."""
    source, destination = _endpoints(segments)
    flip = source > destination
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    mixed = low * _K1
    mixed += high * _K2
    mixed ^= mixed >> _SHIFT
    mixed *= _K3
    index = np.arange(len(segments), dtype=np.uint64)
    side = flip.astype(np.uint64) << np.uint64(_INDEX_BITS)
    groups = _cut(mixed & ~np.uint64((2 << _INDEX_BITS) - 1) | side | index)
    return groups if _is_exact(segments, groups) else _group_by_key(segments)


def keys(segments: Segments, rows: Ints) -> tuple[list[bytes], list[bytes]]:
    """Give the keys of the directions that segments belong to, and those of the opposite
    directions.
    """
    forth = np.empty(len(rows), KEY)
    back = np.empty(len(rows), KEY)
    ports = segments.ports[rows]
    columns = {
        "high": (segments.source_high[rows], segments.destination_high[rows]),
        "low": (segments.source_low[rows], segments.destination_low[rows]),
        "port": (ports >> 16, ports & 0xFFFF),
    }
    for name, (source, destination) in columns.items():
        forth[f"source_{name}"] = back[f"destination_{name}"] = source
        forth[f"destination_{name}"] = back[f"source_{name}"] = destination
    whole = f"V{KEY.itemsize}"
    return forth.view(whole).tolist(), back.view(whole).tolist()


def _endpoints(segments: Segments) -> tuple[Words, Words]:
    """Give a word for each endpoint: exact for IPv4 (48 bits of mapped address, 16 of port), else a
    hash.
    """
    ports = segments.ports.astype(np.uint64)
    words: list[Words] = []
    for high, low, port in (
        (segments.source_high, segments.source_low, ports >> np.uint64(16)),
        (segments.destination_high, segments.destination_low, ports & np.uint64(0xFFFF)),
    ):
        words.append(low << np.uint64(16) | port)
        if high.any():
            words[-1] += (high * _K1) ^ (low * _K2)
    return words[0], words[1]


def _cut(sortable: Words) -> Groups:
    sortable.sort()
    order = (sortable & np.uint64((1 << _INDEX_BITS) - 1)).astype(np.int64)
    return Groups(
        order,
        _starts(sortable >> np.uint64(_INDEX_BITS)),
        _starts(sortable >> np.uint64(_INDEX_BITS + 1)),
    )


def _starts(sorted_keys: Words) -> Ints:
    changes = np.flatnonzero(sorted_keys[1:] != sorted_keys[:-1]) + 1
    return np.concatenate([np.zeros(1, np.int64), changes])


def _is_exact(segments: Segments, groups: Groups) -> bool:
    """Whether a direction holds segments of one key, and the two of a connection are opposite."""
    order = groups.order
    same = np.ones(len(order), bool)
    for column in (
        segments.source_high,
        segments.source_low,
        segments.destination_high,
        segments.destination_low,
        segments.ports,
    ):
        ordered = column[order]
        same[1:] &= ordered[1:] == ordered[:-1]
    same[groups.flows] = True
    if not same.all():
        return False
    forth, back = keys(segments, order[groups.flows])
    first = np.isin(groups.flows, groups.units, assume_unique=True).tolist()
    return all(first[i] or forth[i] == back[i - 1] for i in range(len(forth)))


def _group_by_key(segments: Segments) -> Groups:
    forth, back = keys(segments, np.arange(len(segments)))
    numbers: dict[bytes, int] = {}
    sortable = np.empty(len(segments), np.uint64)
    for i, (mine, theirs) in enumerate(zip(forth, back, strict=True)):
        unit = numbers.setdefault(min(mine, theirs), len(numbers))
        sortable[i] = (unit * 2 + (mine > theirs)) << _INDEX_BITS | i
    return _cut(sortable)
