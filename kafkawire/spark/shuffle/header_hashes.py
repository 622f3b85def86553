"""Hashes connections from packet headers in place, without parsing most packets.

The hash equals that of the parsed segment. Only plain TCP over IPv4 over Ethernet is hashed
here; other packets go through the parser.

    block --plain rows: fixed offsets--> addresses, ports --hash--> connection hashes
                                    `--> flags
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ...capture.files.blocks import PacketBlock
from ...capture.files.columns import Ints, take_rows
from ...capture.packets.segment_rows import ACK, SYN
from .packets import Hashes, endpoint_hashes

ETHERNET: Final = 1
PLAIN: Final = np.dtype(
    {
        "names": [
            *("type", "version", "length", "fragment", "protocol", "source", "destination"),
            *("ports", "offset", "flags"),
        ],
        "formats": [">u2", "u1", ">u2", ">u2", "u1", ">u4", ">u4", (">u2", 2), "u1", "u1"],
        "offsets": [12, 14, 16, 20, 23, 26, 30, 34, 46, 47],
        "itemsize": 54,
    }
)
"""Ethernet, an IPv4 header without options, a TCP header."""

IPV4: Final = 0x0800
NO_OPTIONS: Final = 0x45
PIECE: Final = 0x3FFF
"""Bits that are only set in fragments."""

TCP: Final = 6
MAPPED: Final = np.uint64(0xFFFF << 32)
"""Prefix of the IPv6-mapped form of an IPv4 address."""


def plain_headers(block: PacketBlock) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.void]]:
    """Return which packets are plain TCP, and the headers (PLAIN) of those."""
    captured = np.where(block.link == ETHERNET, block.captured, 0)
    return plain_rows(block.data, block.start, captured)


def plain_rows(
    data: bytes, start: Ints, captured: Ints
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.void]]:
    """Return which Ethernet packets are plain TCP, and the headers (PLAIN) of those."""
    plain: npt.NDArray[np.bool_] = captured >= PLAIN.itemsize
    heads = take_rows(data, start[plain], PLAIN)
    good = (heads["type"] == IPV4) & (heads["version"] == NO_OPTIONS) & (heads["protocol"] == TCP)
    good &= (heads["fragment"] & PIECE) == 0
    words = heads["offset"] >> 4
    good &= (words >= 5) & (heads["length"] >= 20 + 4 * words.astype(np.int64))
    plain[plain] = good
    return plain, heads[good]


def is_syn(flags: npt.NDArray[np.uint8] | Ints) -> npt.NDArray[np.bool_]:
    """Return which segments ask for a connection: SYN without ACK."""
    opening: npt.NDArray[np.bool_] = flags & (SYN | ACK) == SYN
    return opening


def header_sums(heads: npt.NDArray[np.void]) -> Hashes:
    """Return the sums of the hashes of both endpoints: the hashes without the set."""
    none = np.zeros(1, np.uint64)
    ends = [
        endpoint_hashes(none, heads[name].astype(np.uint64) | MAPPED, heads["ports"][:, side])
        for side, name in enumerate(("source", "destination"))
    ]
    return ends[0] + ends[1]
