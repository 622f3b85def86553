"""Hashes connections from packet headers in place, without parsing most packets.

Law: the hash equals that of the parsed segment. Only plain TCP over IPv4 over Ethernet is hashed
here; other packets go through the parser.

    block --plain rows: fixed offsets--> addresses, ports --hash--> connection hashes
                                    `--> flags
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ...capture.files.blocks import PacketBlock
from ...capture.files.columns import take_rows
from .packets import Hashes, endpoint_hashes, finish_hashes

ETHERNET: Final = 1
PLAIN: Final = np.dtype(
    {
        "names": [
            *("type", "version", "fragment", "protocol", "source", "destination", "ports", "flags")
        ],
        "formats": [">u2", "u1", ">u2", "u1", ">u4", ">u4", (">u2", 2), "u1"],
        "offsets": [12, 14, 20, 23, 26, 30, 34, 47],
        "itemsize": 48,
    }
)
"""Ethernet, an IPv4 header without options, the TCP ports and flags."""

IPV4: Final = 0x0800
NO_OPTIONS: Final = 0x45
PIECE: Final = 0x3FFF
"""Bits that are only set in fragments."""

TCP: Final = 6
MAPPED: Final = np.uint64(0xFFFF << 32)
"""Prefix of the IPv6-mapped form of an IPv4 address."""


def header_hashes(block: PacketBlock, set: int) -> tuple[npt.NDArray[np.bool_], Hashes]:
    """Return which packets are plain TCP, and the connection hashes of those."""
    plain, heads = plain_headers(block)
    return plain, finish_hashes(header_sums(heads), set)


def plain_headers(block: PacketBlock) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.void]]:
    """Return which packets are plain TCP, and the headers (PLAIN) of those."""
    plain: npt.NDArray[np.bool_] = (block.link == ETHERNET) & (block.captured >= PLAIN.itemsize)
    heads = take_rows(block.data, block.start[plain], PLAIN)
    good = (heads["type"] == IPV4) & (heads["version"] == NO_OPTIONS) & (heads["protocol"] == TCP)
    good &= (heads["fragment"] & PIECE) == 0
    plain[plain] = good
    return plain, heads[good]


def header_sums(heads: npt.NDArray[np.void]) -> Hashes:
    """Return the sums of the hashes of both endpoints: the hashes without the set."""
    none = np.zeros(1, np.uint64)
    ends = [
        endpoint_hashes(none, heads[name].astype(np.uint64) | MAPPED, heads["ports"][:, at])
        for at, name in enumerate(("source", "destination"))
    ]
    return ends[0] + ends[1]
