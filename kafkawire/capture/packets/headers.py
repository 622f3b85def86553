"""Formats of the headers from the link layer to TCP, and the tables of what follows, for numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..files.columns import Octets
from . import kinds
from .kinds import MAX_LENGTH, Kind


def table(size: int, rows: Mapping[int, Kind], other: Kind = Kind.SKIPPED) -> Octets:
    """Return the kind of each number below `size`; other: of those that `rows` has not."""
    by_number = np.full(size, other, np.uint8)
    for number, kind in rows.items():
        by_number[number] = kind
    return by_number


_LENGTHS: Final = dict.fromkeys(range(MAX_LENGTH + 1), Kind.LLC)

LINKS: Final = table(1 << 16, kinds.LINKS)
ETHERTYPES: Final = table(1 << 16, {**_LENGTHS, **kinds.ETHERTYPES})
LINUX_TYPES: Final = table(1 << 16, {**kinds.ETHERTYPES, **kinds.BELOW_ETHERTYPES})
IN_GRE: Final = table(1 << 16, kinds.IN_GRE)
PROTOCOLS4: Final = table(256, kinds.PROTOCOLS4)
PROTOCOLS6: Final = table(256, kinds.PROTOCOLS6)
PPP_PROTOCOLS: Final = table(
    1 << 16, {**kinds.PPP_PROTOCOLS, **dict.fromkeys(kinds.PPP_CONTROL, Kind.OTHER)}
)
NEXT_PROTOCOLS: Final = table(256, kinds.NEXT_PROTOCOLS)
FAMILIES: Final = table(
    256,
    {
        2: Kind.IPV4,
        **dict.fromkeys((10, 24, 26, 28, 30), Kind.IPV6),
    },
    Kind.OTHER,
)
"""Address families of the BSDs, macOS, Solaris and Linux, which a NULL header carries in the
capturing host's byte order.
"""

VERSIONS: Final = table(16, {4: Kind.IPV4, 6: Kind.IPV6}, Kind.MALFORMED)
MPLS_PAYLOADS: Final = table(16, {4: Kind.IPV4, 6: Kind.IPV6, 1: Kind.OTHER}, Kind.ETHERNET)
"""What the first four bits behind a label stack show (RFC 4928); 1: an associated channel."""


def _dtype(*fields: tuple[str, str]) -> np.dtype[np.void]:
    return np.dtype(list(fields))


_TYPE: Final = ("type", ">u2")

HEADERS: Final = {
    Kind.ETHERNET: _dtype(("addresses", "V12"), _TYPE),
    Kind.SLL: _dtype(("sender", "V14"), _TYPE),
    Kind.SLL2: _dtype(_TYPE, ("sender", "V18")),
    Kind.NULL: _dtype(("first", "u1"), ("middle", "V2"), ("last", "u1")),
    Kind.RAW_IP: _dtype(("version", "u1")),
    Kind.PPPOE: _dtype(("session", "V6"), ("protocol", ">u2")),
    Kind.VLAN: _dtype(("tag", ">u2"), _TYPE),
    Kind.TAG: _dtype(("tag", "V4"), _TYPE),
    Kind.E_TAG: _dtype(("tag", "V6"), _TYPE),
    Kind.I_TAG: _dtype(("tag", "V4")),
    Kind.CISCO_HDLC: _dtype(("address", "V2"), _TYPE),
    Kind.FIREWIRE: _dtype(("addresses", "V16"), _TYPE),
    Kind.LLC: _dtype(("dsap", "u1"), ("ssap", "u1"), ("control", "u1")),
    Kind.SNAP: _dtype(("oui", "u1"), ("oui_end", ">u2"), _TYPE),
    Kind.MPLS: _dtype(("label", ">u4")),
    Kind.MPLS_PAYLOAD: _dtype(("first", "u1")),
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
    Kind.UDP: _dtype(
        ("source", ">u2"), ("destination", ">u2"), ("length", ">u2"), ("checksum", ">u2")
    ),
    Kind.VXLAN: _dtype(("flags", "u1"), ("group", "V2"), ("next", "u1"), ("network", "V4")),
    Kind.GENEVE: _dtype(("options", "u1"), ("flags", "u1"), _TYPE, ("network", "V4")),
    Kind.GRE: _dtype(("flags", ">u2"), _TYPE),
    Kind.NSH: _dtype(("length", ">u2"), ("format", "u1"), ("next", "u1")),
    Kind.ERSPAN_1: _dtype(("first", "u1")),
    Kind.ERSPAN_2: _dtype(("session", "V8")),
    Kind.ERSPAN_3: _dtype(("session", "V10"), ("flags", ">u2")),
    Kind.GTP: _dtype(("flags", "u1"), ("type", "u1"), ("length", ">u2"), ("tunnel", "V4")),
    Kind.GTP_EXTENSION: _dtype(("length", "u1")),
    Kind.ETHERIP: _dtype(("version", ">u2")),
    Kind.NAT_T: _dtype(("spi", ">u4")),
    Kind.PPP: _dtype(("address", ">u2")),
    Kind.PPPD: _dtype(("direction", "V2")),
    Kind.PPP_DIRECTION: _dtype(("direction", "u1")),
    Kind.PPP_PROTOCOL: _dtype(("first", "u1")),
    Kind.NFLOG: _dtype(("family", "u1"), ("version", "u1"), ("resource", ">u2")),
    Kind.PKTAP: _dtype(("length", "<u4"), ("next", "<u4"), ("link", "<u4")),
    Kind.ENC: _dtype(("first", "u1"), ("middle", "V2"), ("last", "u1"), ("rest", "V8")),
    Kind.IPNET: _dtype(("version", "u1"), ("family", "u1"), ("rest", "V22")),
    Kind.IEEE802_11: _dtype(("control", "u1"), ("flags", "u1")),
    Kind.RADIOTAP: _dtype(("version", ">u2"), ("length", "<u2"), ("present", "V4")),
    Kind.PPI: _dtype(("version", ">u2"), ("length", "<u2"), ("link", "<u4")),
    Kind.AVS: _dtype(("version", ">u4"), ("length", ">u4")),
    Kind.TCP: _dtype(
        ("source", ">u2"),
        ("destination", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("rest", "V4"),
    ),
}
"""The fixed part of each header: nothing is taken from a packet that has not got all of it."""
