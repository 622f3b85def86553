"""Link, network and tunnel headers, taken off thousands of packets at a time.

Law: a layer knows its own header and what may follow, nothing else; checksums are not looked at
(offload makes them wrong); a packet that cannot be followed to TCP ends in a kind that says why.

    link type --> ETHERNET | SLL | ... --> (VLAN)* | PPPOE --> IPV4 | IPV6 (extensions)* --> TCP
                                                                  `--> UDP | GRE | IP in IP --> one
                                                                  more such stack

A handler gets the packets that stand at its layer, each with the bytes it has, and tells of each
what follows and where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .blocks import Ints, Octets, take_rows


class Kind(IntEnum):
    """What stands at an offset of a packet; those up to FRAGMENT are where a packet's way ends."""

    OTHER = 0
    """Something that does not carry TCP."""
    CUT = 1
    """A header that the snaplen cut."""
    MALFORMED = 2
    """A header that contradicts itself."""
    LINK_TYPE = 3
    """A link layer we do not read."""
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
"""Headers of one packet; more is no traffic."""

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


@dataclass(slots=True)
class Layer:
    """Packets that stand at the same kind of header.

    rows: which packets of the block. at: where their header begins. end: where their captured bytes
    end. stop: where they end by the lengths on the wire. inside: whether a tunnel lies behind them.
    depth: headers taken off so far.
    """

    kind: Kind
    rows: Ints
    at: Ints
    end: Ints
    stop: Ints
    inside: bool = False
    depth: int = 0

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Layer:
        return Layer(
            self.kind,
            self.rows[chosen],
            self.at[chosen],
            self.end[chosen],
            self.stop[chosen],
            self.inside,
            self.depth,
        )


class Step(NamedTuple):
    """What follows a header, packet by packet: its kind, where it begins, where it stops."""

    kinds: Octets
    at: Ints
    stop: Ints


class Addresses:
    """The innermost IP addresses of each packet, as 128 bits in two halves; IPv4 in its IPv6-mapped
    form.
    """

    def __init__(self, packets: int) -> None:
        self.source_high = np.zeros(packets, np.uint64)
        self.source_low = np.zeros(packets, np.uint64)
        self.destination_high = np.zeros(packets, np.uint64)
        self.destination_low = np.zeros(packets, np.uint64)


MAPPED: Final = np.uint64(0xFFFF_0000_0000)
"""The low half of ::ffff:0.0.0.0."""


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


def _typed(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    return Step(ETHERTYPES[headers["type"]], layer.at + HEADERS[layer.kind].itemsize, layer.stop)


def _null(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    return Step(FAMILIES[headers["first"] | headers["last"]], layer.at + 4, layer.stop)


def _raw_ip(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    return Step(VERSIONS[headers["version"] >> 4], layer.at, layer.stop)


def _pppoe(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    return Step(PPP_PROTOCOLS[headers["protocol"]], layer.at + 8, layer.stop)


def _ipv4(headers: npt.NDArray[np.void], layer: Layer, addresses: Addresses) -> Step:
    addresses.source_low[layer.rows] = headers["source"] | MAPPED
    addresses.destination_low[layer.rows] = headers["destination"] | MAPPED
    addresses.source_high[layer.rows] = 0
    addresses.destination_high[layer.rows] = 0
    size = (headers["version"] & 15).astype(np.int64) * 4
    length = headers["length"].astype(np.int64)
    # Segmentation offload leaves the length zero: the packet then ends where the wire says.
    stop = np.where(length == 0, layer.stop, layer.at + length)
    kinds = PROTOCOLS4[headers["protocol"]]
    wrong = (headers["version"] < 0x45) | (headers["version"] > 0x4F)
    wrong |= stop < layer.at + size
    kinds[(headers["fragment"] & 0x3FFF) != 0] = Kind.FRAGMENT4
    kinds[wrong] = Kind.MALFORMED
    at = np.where(kinds == Kind.FRAGMENT4, layer.at, layer.at + size)
    return Step(kinds, at, stop)


def _ipv6(headers: npt.NDArray[np.void], layer: Layer, addresses: Addresses) -> Step:
    for name in ("source_high", "source_low", "destination_high", "destination_low"):
        getattr(addresses, name)[layer.rows] = headers[name]
    length = headers["length"].astype(np.int64)
    stop = np.where(length == 0, layer.stop, layer.at + 40 + length)
    kinds = PROTOCOLS6[headers["next"]]
    kinds[headers["version"] >> 4 != 6] = Kind.MALFORMED
    return Step(kinds, layer.at + 40, stop)


def _extension(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    size = (headers["length"].astype(np.int64) + 1) * 8
    return Step(PROTOCOLS6[headers["next"]], layer.at + size, layer.stop)


def _authentication(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    size = (headers["length"].astype(np.int64) + 2) * 4
    return Step(PROTOCOLS6[headers["next"]], layer.at + size, layer.stop)


def _udp(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    return Step(UDP_PORTS[headers["destination"]], layer.at + 8, layer.stop)


def _vxlan(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    kinds = np.where(headers["flags"] & 8, Kind.ETHERNET, Kind.OTHER).astype(np.uint8)
    return Step(kinds, layer.at + 8, layer.stop)


def _geneve(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    options = (headers["options"] & 0x3F).astype(np.int64) * 4
    return Step(ETHERTYPES[headers["type"]], layer.at + 8 + options, layer.stop)


def _gre(headers: npt.NDArray[np.void], layer: Layer, _: Addresses) -> Step:
    flags = headers["flags"]
    size = np.full(len(flags), 4, np.int64)
    for bit in (0x8000, 0x2000, 0x1000):
        # Checksum, key, sequence number: 4 bytes each, if flagged (RFC 2784, RFC 2890).
        size += np.where(flags & bit, 4, 0)
    kinds = ETHERTYPES[headers["type"]]
    kinds[(flags & 0x4007) != 0] = Kind.OTHER
    return Step(kinds, layer.at + size, layer.stop)


HANDLERS: Final[dict[Kind, Callable[[npt.NDArray[np.void], Layer, Addresses], Step]]] = {
    Kind.ETHERNET: _typed,
    Kind.SLL: _typed,
    Kind.SLL2: _typed,
    Kind.VLAN: _typed,
    Kind.NULL: _null,
    Kind.RAW_IP: _raw_ip,
    Kind.PPPOE: _pppoe,
    Kind.IPV4: _ipv4,
    Kind.IPV6: _ipv6,
    Kind.EXTENSION: _extension,
    Kind.AUTHENTICATION: _authentication,
    Kind.UDP: _udp,
    Kind.VXLAN: _vxlan,
    Kind.GENEVE: _geneve,
    Kind.GRE: _gre,
}


def take_off(data: bytes, layer: Layer, addresses: Addresses) -> list[Layer]:
    """Take one header off the packets of a layer; returns them sorted by what follows."""
    if layer.depth >= MAX_LAYERS:
        return [_as(layer, Kind.MALFORMED)]
    if layer.kind is Kind.IP_IN_IP:
        return [_as(layer, Kind.OTHER if layer.inside else Kind.RAW_IP, inside=True)]
    if layer.kind in TUNNELS and layer.inside:
        return [_as(layer, Kind.OTHER)]
    whole, cut = whole_headers(layer)
    if not len(whole.rows):
        return cut
    headers = take_rows(data, whole.at, HEADERS[layer.kind])
    return _sorted(whole, HANDLERS[layer.kind](headers, whole, addresses)) + cut


def whole_headers(layer: Layer) -> tuple[Layer, list[Layer]]:
    """Part the packets that have all of this layer's fixed header from those that are cut in it."""
    whole = layer.at + HEADERS[layer.kind].itemsize <= layer.end
    if whole.all():
        return layer, []
    return layer[whole], [_as(layer[~whole], Kind.CUT)]


def _as(layer: Layer, kind: Kind, *, inside: bool = False) -> Layer:
    return Layer(
        kind,
        layer.rows,
        layer.at,
        layer.end,
        layer.stop,
        layer.inside or inside,
        layer.depth + 1,
    )


def _sorted(layer: Layer, step: Step) -> list[Layer]:
    inside = layer.inside or layer.kind in TUNNELS
    kinds, at, stop = step
    if (kinds == kinds[0]).all():
        kind = Kind(int(kinds[0]))
        return [Layer(kind, layer.rows, at, layer.end, stop, inside, layer.depth + 1)]
    found = []
    for number in np.unique(kinds).tolist():
        chosen = kinds == number
        part = Layer(Kind(number), layer.rows, at, layer.end, stop, inside, layer.depth + 1)
        found.append(part[chosen])
    return found
