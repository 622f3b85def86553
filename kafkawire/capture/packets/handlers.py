"""Handles each type of header of the link and network layers; see `layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..files.columns import Ints, Octets
from . import tunnels
from .headers import (
    ETHERTYPES,
    FAMILIES,
    HEADERS,
    LINUX_TYPES,
    MPLS_PAYLOADS,
    PPP_PROTOCOLS,
    PROTOCOLS4,
    PROTOCOLS6,
    VERSIONS,
)
from .kinds import Kind
from .layers import Decoding, Layer, Step
from .links import LINK_HANDLERS

Headers: TypeAlias = npt.NDArray[np.void]
Handler: TypeAlias = Callable[[Headers, Layer, Decoding], Step]

MAPPED: Final = np.uint64(0xFFFF_0000_0000)
"""The low half of ::ffff:0.0.0.0."""


def _typed(types: Octets) -> Handler:
    """Return the handler of a header that ends in an EtherType."""

    def handle(headers: Headers, layer: Layer, _: Decoding) -> Step:
        numbers = headers["type"]
        payload = layer.at + HEADERS[layer.kind].itemsize
        return Step(types[numbers], payload, layer.stop, numbers)

    return handle


def _prefix(kind: Kind) -> Handler:
    """Return the handler of a header without a choice of what follows."""

    def handle(headers: Headers, layer: Layer, _: Decoding) -> Step:
        kinds = np.full(len(headers), kind, np.uint8)
        return Step(kinds, layer.at + HEADERS[layer.kind].itemsize, layer.stop)

    return handle


def _null(headers: Headers, layer: Layer, _: Decoding) -> Step:
    numbers = headers["first"] | headers["last"]
    payload = layer.at + HEADERS[layer.kind].itemsize
    return Step(FAMILIES[numbers], payload, layer.stop)


def _raw_ip(headers: Headers, layer: Layer, _: Decoding) -> Step:
    return Step(VERSIONS[headers["version"] >> 4], layer.at, layer.stop)


def _pppoe(headers: Headers, layer: Layer, _: Decoding) -> Step:
    numbers = headers["protocol"]
    return Step(PPP_PROTOCOLS[numbers], layer.at + 8, layer.stop, numbers)


def _llc(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle LLC (IEEE 802.2): SNAP, IP, or a protocol such as the spanning tree's."""
    dsap, ssap = headers["dsap"], headers["ssap"]
    kinds = np.full(len(headers), Kind.OTHER, np.uint8)
    kinds[(dsap == 0xAA) & (ssap == 0xAA)] = Kind.SNAP
    kinds[(dsap == 0x06) & (ssap == 0x06)] = Kind.IPV4
    return Step(kinds, layer.at + 3, layer.stop)


def _snap(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle SNAP: an EtherType (RFC 1042), a bridged frame (RFC 2684), or a vendor's protocol."""
    numbers = headers["type"]
    oui = headers["oui"].astype(np.int64) << 16 | headers["oui_end"]
    kinds = ETHERTYPES[numbers]
    kinds[(oui != 0) & (oui != 0xF8)] = Kind.OTHER
    kinds[oui == 0x80C2] = Kind.SKIPPED
    return Step(kinds, layer.at + 5, layer.stop, numbers)


def _mpls(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle a label (RFC 3032)."""
    bottom = (headers["label"] & 0x100) != 0
    kinds = np.where(bottom, Kind.MPLS_PAYLOAD, Kind.MPLS).astype(np.uint8)
    return Step(kinds, layer.at + 4, layer.stop)


def _mpls_payload(headers: Headers, layer: Layer, _: Decoding) -> Step:
    first = headers["first"] >> 4
    payload = np.where(first == 0, layer.at + 4, layer.at)  # a control word (RFC 4448)
    return Step(MPLS_PAYLOADS[first], payload, layer.stop)


def _ipv4(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    addresses = decoding.addresses
    addresses.source_low[layer.rows] = headers["source"] | MAPPED
    addresses.destination_low[layer.rows] = headers["destination"] | MAPPED
    addresses.source_high[layer.rows] = 0
    addresses.destination_high[layer.rows] = 0
    size = (headers["version"] & 15).astype(np.int64) * 4
    length = headers["length"].astype(np.int64)
    # Segmentation offload sets the length to zero: use the length on the wire.
    stop = np.where(length == 0, layer.stop, layer.at + length)
    numbers = headers["protocol"]
    kinds = PROTOCOLS4[numbers]
    wrong = (headers["version"] < 0x45) | (headers["version"] > 0x4F)
    wrong |= stop < layer.at + size
    kinds[(headers["fragment"] & 0x3FFF) != 0] = Kind.FRAGMENT4
    kinds[wrong] = Kind.MALFORMED
    payload = np.where(kinds == Kind.FRAGMENT4, layer.at, layer.at + size)
    return Step(kinds, payload, stop, numbers)


def _ipv6(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    for name in ("source_high", "source_low", "destination_high", "destination_low"):
        getattr(decoding.addresses, name)[layer.rows] = headers[name]
    length = headers["length"].astype(np.int64)
    stop = np.where(length == 0, layer.stop, layer.at + 40 + length)
    numbers = headers["next"]
    kinds = PROTOCOLS6[numbers]
    kinds[headers["version"] >> 4 != 6] = Kind.MALFORMED
    return Step(kinds, layer.at + 40, stop, numbers)


def _extension(headers: Headers, layer: Layer, _: Decoding) -> Step:
    size = (headers["length"].astype(np.int64) + 1) * 8
    return _behind(headers["next"], layer.at + size, layer)


def _authentication(headers: Headers, layer: Layer, _: Decoding) -> Step:
    size = (headers["length"].astype(np.int64) + 2) * 4
    return _behind(headers["next"], layer.at + size, layer)


def _behind(numbers: npt.NDArray[np.integer[Any]], payload: Ints, layer: Layer) -> Step:
    return Step(PROTOCOLS6[numbers], payload, layer.stop, numbers)


HANDLERS: Final[dict[Kind, Handler]] = {
    **dict.fromkeys(
        (Kind.ETHERNET, Kind.VLAN, Kind.TAG, Kind.E_TAG, Kind.CISCO_HDLC, Kind.FIREWIRE),
        _typed(ETHERTYPES),
    ),
    **dict.fromkeys((Kind.SLL, Kind.SLL2), _typed(LINUX_TYPES)),
    **dict.fromkeys((Kind.NULL, Kind.ENC), _null),
    Kind.I_TAG: _prefix(Kind.ETHERNET),
    Kind.ERSPAN_2: _prefix(Kind.ETHERNET),
    Kind.PPPD: _prefix(Kind.PPP_PROTOCOL),
    Kind.PPP_DIRECTION: _prefix(Kind.PPP),
    Kind.RAW_IP: _raw_ip,
    Kind.PPPOE: _pppoe,
    Kind.LLC: _llc,
    Kind.SNAP: _snap,
    Kind.MPLS: _mpls,
    Kind.MPLS_PAYLOAD: _mpls_payload,
    Kind.IPV4: _ipv4,
    Kind.IPV6: _ipv6,
    Kind.EXTENSION: _extension,
    Kind.AUTHENTICATION: _authentication,
    **LINK_HANDLERS,
    **tunnels.TUNNEL_HANDLERS,
}
