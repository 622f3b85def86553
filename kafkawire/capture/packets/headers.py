"""Formats and protocol numbers of the headers from the link layer to TCP.

Law: tables only; a number that is in no table means Kind.OTHER.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from ..files.columns import Octets


class Kind(IntEnum):
    """The type of header at an offset of a packet; those up to FRAGMENT6 are final."""

    OTHER = 0
    """Something that does not carry TCP."""
    CUT = 1
    """A header truncated by the snaplen."""
    MALFORMED = 2
    """A header that contradicts itself."""
    LINK_TYPE = 3
    """An unsupported link type."""
    TCP = 4
    FRAGMENT4 = 5
    FRAGMENT6 = 6
    ETHERNET = 7
    SLL = 8
    SLL2 = 9
    NULL = 10
    RAW_IP = 11
    PPPOE = 12
    VLAN = 13
    IPV4 = 14
    IPV6 = 15
    EXTENSION = 16
    AUTHENTICATION = 17
    UDP = 18
    VXLAN = 19
    GENEVE = 20
    GRE = 21
    IP_IN_IP = 22


ENDS: Final = Kind.FRAGMENT6
TUNNELS: Final = frozenset({Kind.VXLAN, Kind.GENEVE, Kind.GRE, Kind.IP_IN_IP})
MAX_LAYERS: Final = 24
"""Headers of one packet at most; a packet with more is malformed."""

LINKS: Final = {
    0: Kind.NULL,
    1: Kind.ETHERNET,
    12: Kind.RAW_IP,
    14: Kind.RAW_IP,
    51: Kind.PPPOE,
    101: Kind.RAW_IP,
    108: Kind.NULL,
    113: Kind.SLL,
    228: Kind.IPV4,
    229: Kind.IPV6,
    276: Kind.SLL2,
}
"""LINKTYPE_ numbers (tcpdump.org/linktypes.html)."""


def _table(size: int, rows: dict[int, Kind]) -> Octets:
    table = np.full(size, Kind.OTHER, np.uint8)
    for number, kind in rows.items():
        table[number] = kind
    return table


ETHERTYPES: Final = _table(
    1 << 16,
    {
        0x0800: Kind.IPV4,
        0x86DD: Kind.IPV6,
        0x8100: Kind.VLAN,
        0x88A8: Kind.VLAN,
        0x9100: Kind.VLAN,
        0x9200: Kind.VLAN,
        0x8864: Kind.PPPOE,
        0x6558: Kind.ETHERNET,
    },
)
_COMMON_PROTOCOLS: Final = {
    4: Kind.IP_IN_IP,
    6: Kind.TCP,
    17: Kind.UDP,
    41: Kind.IP_IN_IP,
    47: Kind.GRE,
    51: Kind.AUTHENTICATION,
}
PROTOCOLS4: Final = _table(256, _COMMON_PROTOCOLS)
PROTOCOLS6: Final = _table(
    256,
    {
        **_COMMON_PROTOCOLS,
        0: Kind.EXTENSION,
        43: Kind.EXTENSION,
        44: Kind.FRAGMENT6,
        60: Kind.EXTENSION,
        135: Kind.EXTENSION,
        139: Kind.EXTENSION,
        140: Kind.EXTENSION,
    },
)
PPP_PROTOCOLS: Final = _table(1 << 16, {0x0021: Kind.IPV4, 0x0057: Kind.IPV6})
UDP_PORTS: Final = _table(1 << 16, {4789: Kind.VXLAN, 8472: Kind.VXLAN, 6081: Kind.GENEVE})
FAMILIES: Final = _table(
    256, {2: Kind.IPV4, 10: Kind.IPV6, 24: Kind.IPV6, 28: Kind.IPV6, 30: Kind.IPV6}
)
"""Address families of the BSDs, macOS and Linux, which a NULL header carries in the capturing
host's byte order.
"""

VERSIONS: Final = _table(16, {4: Kind.IPV4, 6: Kind.IPV6})


def _dtype(*fields: tuple[str, str]) -> np.dtype[np.void]:
    return np.dtype(list(fields))


HEADERS: Final = {
    Kind.ETHERNET: _dtype(("addresses", "V12"), ("type", ">u2")),
    Kind.SLL: _dtype(("sender", "V14"), ("type", ">u2")),
    Kind.SLL2: _dtype(("type", ">u2"), ("sender", "V18")),
    Kind.NULL: _dtype(("first", "u1"), ("middle", "V2"), ("last", "u1")),
    Kind.RAW_IP: _dtype(("version", "u1")),
    Kind.PPPOE: _dtype(("session", "V6"), ("protocol", ">u2")),
    Kind.VLAN: _dtype(("tag", ">u2"), ("type", ">u2")),
    Kind.IPV4: _dtype(
        ("version", "u1"),
        ("service", "u1"),
        ("length", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
    ),
    Kind.IPV6: _dtype(
        ("version", "u1"),
        ("flow", "V3"),
        ("length", ">u2"),
        ("next", "u1"),
        ("hops", "u1"),
        ("source_high", ">u8"),
        ("source_low", ">u8"),
        ("destination_high", ">u8"),
        ("destination_low", ">u8"),
    ),
    Kind.EXTENSION: _dtype(("next", "u1"), ("length", "u1")),
    Kind.AUTHENTICATION: _dtype(("next", "u1"), ("length", "u1")),
    Kind.UDP: _dtype(("source", ">u2"), ("destination", ">u2"), ("rest", "V4")),
    Kind.VXLAN: _dtype(("flags", "u1"), ("rest", "V7")),
    Kind.GENEVE: _dtype(("options", "u1"), ("flags", "u1"), ("type", ">u2"), ("rest", "V4")),
    Kind.GRE: _dtype(("flags", ">u2"), ("type", ">u2")),
    Kind.TCP: _dtype(
        ("source", ">u2"),
        ("destination", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("rest", "V6"),
    ),
}
"""The fixed part of each header: nothing is taken from a packet that has not got all of it."""
