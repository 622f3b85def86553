"""Handles the headers of tunnels: over UDP, GRE and IP; see `layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .headers import ETHERTYPES, IN_GRE, NEXT_PROTOCOLS
from .kinds import Kind
from .layers import Decoding, Layer, Step

Headers: TypeAlias = npt.NDArray[np.void]

WIREGUARD: Final = (51820, 51871)
"""Ports of WireGuard, and of Cilium's. Clients of others may have them, but not both sides."""

GRE_CHECKSUM: Final = 0x8000
GRE_ROUTING: Final = 0x4000
GRE_KEY: Final = 0x2000
GRE_SEQUENCE: Final = 0x1000
GRE_ACKNOWLEDGMENT: Final = 0x0080
GRE_VERSION: Final = 0x0007

G_PDU: Final = 255
"""The type of GTP-U messages that carry packets; others are signalling."""


def _udp(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    source, destination = headers["source"], headers["destination"]
    kinds = decoding.udp_ports[destination]
    for port in WIREGUARD:
        kinds[(source == port) & (destination == port)] = Kind.SKIPPED
    keeps_alive = (kinds == Kind.NAT_T) & (headers["length"] < 12)
    kinds[keeps_alive | (headers["length"] == 8)] = Kind.OTHER
    return Step(kinds, layer.at + 8, layer.stop, destination)


def _vxlan(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle VXLAN (RFC 7348), and its generic protocol extension."""
    flags, following = headers["flags"], headers["next"]
    kinds = np.where(flags & 8, Kind.ETHERNET, Kind.SKIPPED).astype(np.uint8)
    extended = (flags & 4) != 0
    kinds[extended] = NEXT_PROTOCOLS[following[extended]]
    return Step(kinds, layer.at + 8, layer.stop, np.where(extended, following, flags))


def _geneve(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle Geneve (RFC 8926)."""
    options = (headers["options"] & 0x3F).astype(np.int64) * 4
    numbers = headers["type"]
    kinds = ETHERTYPES[numbers]
    kinds[headers["options"] > 0x3F] = Kind.SKIPPED  # another version
    return Step(kinds, layer.at + 8 + options, layer.stop, numbers)


def _gre(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle GRE (RFC 2784, RFC 2890), and version 1, of PPTP (RFC 2637)."""
    flags, numbers = headers["flags"], headers["type"]
    size = np.full(len(flags), 4, np.int64)
    for bit in (GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE):
        size += np.where(flags & bit, 4, 0)
    version = flags & GRE_VERSION
    size += np.where((version == 1) & ((flags & GRE_ACKNOWLEDGMENT) != 0), 4, 0)
    kinds = IN_GRE[numbers]
    kinds[(kinds == Kind.ERSPAN_1) & ((flags & GRE_SEQUENCE) != 0)] = Kind.ERSPAN_2
    kinds[(kinds == Kind.ERSPAN_1)] = Kind.ETHERNET
    kinds[((flags & GRE_ROUTING) != 0) | (version > 1)] = Kind.SKIPPED
    return Step(kinds, layer.at + size, layer.stop, numbers)


def _erspan_3(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle ERSPAN type III: frames or packets, maybe behind a sub-header."""
    flags = headers["flags"]
    content = flags >> 10 & 0x1F
    kinds = np.full(len(flags), Kind.SKIPPED, np.uint8)
    kinds[content == 0] = Kind.ETHERNET
    kinds[content == 2] = Kind.RAW_IP
    return Step(kinds, layer.at + 12 + np.where(flags & 1, 8, 0), layer.stop, content)


def _gtp(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    """Handle GTP-U (3GPP TS 29.281): optional fields, and extension headers."""
    flags = headers["flags"]
    has_fields = (flags & 7) != 0
    behind = layer.at + 8
    has_more = has_fields & (behind + 4 <= layer.end)
    following = np.zeros(len(flags), np.uint8)
    following[has_more] = decoding.octets[behind[has_more] + 3]
    kinds = np.full(len(flags), Kind.RAW_IP, np.uint8)
    kinds[((flags & 4) != 0) & (following != 0)] = Kind.GTP_EXTENSION
    kinds[headers["type"] != G_PDU] = Kind.OTHER
    kinds[flags >> 4 != 3] = Kind.SKIPPED
    return Step(kinds, np.where(has_fields, behind + 4, behind), layer.stop, flags)


def _gtp_extension(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    size = headers["length"].astype(np.int64) * 4
    behind = layer.at + size
    whole = (size > 0) & (behind <= layer.end)
    following = np.zeros(len(size), np.uint8)
    following[whole] = decoding.octets[behind[whole] - 1]
    kinds = np.where(following, Kind.GTP_EXTENSION, Kind.RAW_IP).astype(np.uint8)
    kinds[~whole] = Kind.MALFORMED
    return Step(kinds, behind, layer.stop)


def _nsh(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle the network service header (RFC 8300)."""
    size = (headers["length"] & 0x3F).astype(np.int64) * 4
    numbers = headers["next"]
    kinds = NEXT_PROTOCOLS[numbers]
    kinds[size < 8] = Kind.MALFORMED
    return Step(kinds, layer.at + size, layer.stop, numbers)


def _etherip(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle EtherIP (RFC 3378)."""
    numbers = headers["version"] >> 12
    kinds = np.where(numbers == 3, Kind.ETHERNET, Kind.SKIPPED).astype(np.uint8)
    return Step(kinds, layer.at + 2, layer.stop, numbers)


def _nat_traversal(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle ESP or IKE over UDP (RFC 3948)."""
    kinds = np.where(headers["spi"] == 0, Kind.OTHER, Kind.SKIPPED).astype(np.uint8)
    return Step(kinds, layer.at, layer.stop, np.full(len(headers), 4500))


TUNNEL_HANDLERS: Final[dict[Kind, Callable[[Headers, Layer, Decoding], Step]]] = {
    Kind.UDP: _udp,
    Kind.VXLAN: _vxlan,
    Kind.GENEVE: _geneve,
    Kind.GRE: _gre,
    Kind.ERSPAN_3: _erspan_3,
    Kind.GTP: _gtp,
    Kind.GTP_EXTENSION: _gtp_extension,
    Kind.NSH: _nsh,
    Kind.ETHERIP: _etherip,
    Kind.NAT_T: _nat_traversal,
}
