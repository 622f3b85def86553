"""The blocks of a pcapng file: their types and fixed fields, and the search for them.

Source: the IETF draft "PCAP Next Generation (pcapng) Capture File Format".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ...magic_numbers import PCAPNG
from .columns import take_rows
from .resynchronisation import Candidates, Search, words_at

SECTION: Final = int.from_bytes(PCAPNG)
"""A file begins with this block."""

INTERFACE: Final = 1
OLD_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
SECRETS: Final = 10
SECRETS_HEADER: Final = 8
"""Bytes in front of the secrets: their type and length."""

WITHOUT_PACKETS: Final = frozenset({SECTION, INTERFACE, SECRETS, 4, 5})
"""Types of blocks that no reader expects packets in; 4 and 5 are names and statistics."""

SYSDIG: Final = range(0x201, 0x222)
"""Types of the blocks that sysdig writes: system calls, and what it knows of processes."""

TLS_KEY_LOG: Final = 0x544C534B
"""The type of secrets of a TLS key log ("TLSK")."""

MAX_BLOCK: Final = 1 << 24
"""The longest block that is accepted."""

LEAST_BLOCK: Final = 12


class Layout(NamedTuple):
    """The fixed fields of a type of packet block, and the offset of the packet's bytes."""

    fields: list[tuple[str, str]]
    bytes_at: int

    def dtype(self, order: str) -> np.dtype[np.void]:
        return np.dtype([(name, order + kind) for name, kind in self.fields])


_HEAD: Final = [("type", "u4"), ("length", "u4")]
_TIMED: Final = [("high", "u4"), ("low", "u4"), ("captured", "u4"), ("original", "u4")]

LAYOUTS: Final = {
    ENHANCED_PACKET: Layout([*_HEAD, ("interface", "u4"), *_TIMED], 28),
    OLD_PACKET: Layout([*_HEAD, ("interface", "u2"), ("drops", "u2"), *_TIMED], 28),
    SIMPLE_PACKET: Layout([*_HEAD, ("original", "u4")], 12),
}


LEAST: Final = {kind: layout.bytes_at + 4 for kind, layout in LAYOUTS.items()} | {
    INTERFACE: 20,
    SECRETS: LEAST_BLOCK + SECRETS_HEADER,
}
"""The shortest valid block of each decoded type, in bytes."""


_SOUGHT: Final = np.array([SECTION, INTERFACE, *LAYOUTS])


def find_block(data: bytes, start: int, order: str) -> int | None:
    """Find the first complete section, interface or packet block from `start` on.

    A block is found by its two equal lengths.
    """
    return block_search(data, order).find(start)


def block_search(data: bytes, order: str) -> Search:
    """Return the search for such blocks."""

    def find(window: range) -> Candidates:
        offsets_of_windows, sizes = [], []
        for phase in range(4):
            kinds, lengths = words_at(data, window, phase, 2, order)
            ok = np.isin(kinds, _SOUGHT) & (lengths >= LEAST_BLOCK) & (lengths <= MAX_BLOCK)
            rows = np.flatnonzero(ok & (lengths & 3 == 0))
            offsets_of_windows.append(rows * 4 + phase + window.start)
            sizes.append(lengths[rows].astype(np.int64))
        offsets, size = np.concatenate(offsets_of_windows), np.concatenate(sizes)
        whole = offsets + size <= len(data)
        offsets, size = offsets[whole], size[whole]
        again = take_rows(data, offsets + size - 4, np.dtype([("length", order + "u4")]))
        good = again["length"] == size
        offsets, size = offsets[good], size[good]
        by_offset = np.argsort(offsets)
        offsets, size = offsets[by_offset], size[by_offset]
        return Candidates(offsets, np.zeros_like(offsets), offsets + size)

    return Search(data, find)
