"""Decodes link, network and tunnel headers, thousands of packets at a time.

Law: a handler knows only its own header and what may follow; checksums are ignored (offloading
makes them wrong); a packet without a TCP segment ends in a Kind that gives the reason.

    link type --> ETHERNET | SLL | ... --> (VLAN)* | PPPOE --> IPV4 | IPV6 (extensions)* --> TCP
                                                                  `--> UDP | GRE | IP in IP --> one
                                                                  more such stack

A handler gets the headers of its packets, and returns the type and offset of the next header of
each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..files.columns import Ints, Octets, kinds, take_rows
from .headers import (
    ETHERTYPES,
    FAMILIES,
    HEADERS,
    MAX_LAYERS,
    PPP_PROTOCOLS,
    PROTOCOLS4,
    PROTOCOLS6,
    TUNNELS,
    UDP_PORTS,
    VERSIONS,
    Kind,
)


@dataclass(slots=True)
class Layer:
    """Packets at the same type of header.

    rows: the packets, as indices into the block. at: offset of the header. end: end of the captured
    bytes. stop: end of the packet on the wire. inside: whether the packets were in a tunnel. depth:
    headers decoded so far.
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
    """The next header of each packet: its type, its offset, and the end of the packet."""

    kinds: Octets
    at: Ints
    stop: Ints


class Addresses:
    """The innermost IP addresses of each packet, as 128 bits in two halves.

    IPv4 addresses are in their IPv6-mapped form.
    """

    def __init__(self, packets: int) -> None:
        self.source_high = np.zeros(packets, np.uint64)
        self.source_low = np.zeros(packets, np.uint64)
        self.destination_high = np.zeros(packets, np.uint64)
        self.destination_low = np.zeros(packets, np.uint64)


MAPPED: Final = np.uint64(0xFFFF_0000_0000)
"""The low half of ::ffff:0.0.0.0."""


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
    # Segmentation offload sets the length to zero: use the length on the wire.
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


def decode_header(data: bytes, layer: Layer, addresses: Addresses) -> list[Layer]:
    """Decode one header of the packets of a layer; return them grouped by the next header."""
    if layer.depth >= MAX_LAYERS:
        return [_as(layer, Kind.MALFORMED)]
    if layer.kind is Kind.IP_IN_IP:
        return [_as(layer, Kind.OTHER if layer.inside else Kind.RAW_IP, inside=True)]
    if layer.kind in TUNNELS and layer.inside:
        return [_as(layer, Kind.OTHER)]
    whole, cut = complete_headers(layer)
    if not len(whole.rows):
        return cut
    headers = take_rows(data, whole.at, HEADERS[layer.kind])
    return _sorted(whole, HANDLERS[layer.kind](headers, whole, addresses)) + cut


def complete_headers(layer: Layer) -> tuple[Layer, list[Layer]]:
    """Separate the packets with a complete fixed header of this layer from truncated ones."""
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
    each, at, stop = step
    there = kinds(each)
    found = []
    for number in there:
        part = Layer(Kind(number), layer.rows, at, layer.end, stop, inside, layer.depth + 1)
        found.append(part if len(there) == 1 else part[each == number])
    return found
