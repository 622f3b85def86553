"""Handles link types whose headers vary in size: PPP, NFLOG, PKTAP, 802.11; see `layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..files.columns import Ints
from .headers import FAMILIES, LINKS, PPP_PROTOCOLS
from .kinds import Kind
from .layers import Decoding, Layer, Step

Headers: TypeAlias = npt.NDArray[np.void]

NFULA_PAYLOAD: Final = 9
MAX_ATTRIBUTES: Final = 64
"""Attributes of a packet of NFLOG at most; Linux has about 20."""

DATA_FRAME: Final = 2
NO_DATA: Final = 0x40
QOS: Final = 0x80
TO_AND_FROM: Final = 3
MORE_FRAGMENTS: Final = 0x04
PROTECTED: Final = 0x40
ORDER: Final = 0x80
AGGREGATE: Final = 0x80
"""Bits of 802.11: of the frame control field, and of the QoS field (several packets in a frame)."""


def _ppp(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle the address and control fields of PPP, which may be left out (RFC 1661, RFC 1662)."""
    payload = np.where(headers["address"] == 0xFF03, layer.at + 2, layer.at)
    return Step(np.full(len(headers), Kind.PPP_PROTOCOL, np.uint8), payload, layer.stop)


def _ppp_protocol(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    """Handle the protocol field of PPP, of one byte if that is odd."""
    first = headers["first"].astype(np.int64)
    is_short = (first & 1) != 0
    whole = ~is_short & (layer.at + 2 <= layer.end)
    second = np.zeros(len(first), np.int64)
    second[whole] = decoding.octets[layer.at[whole] + 1]
    numbers = np.where(is_short, first, first << 8 | second)
    kinds = PPP_PROTOCOLS[numbers]
    kinds[~is_short & ~whole] = Kind.MALFORMED
    return Step(kinds, layer.at + np.where(is_short, 1, 2), layer.stop, numbers)


def _nflog(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    """Handle the attributes of NFLOG: length and type in the byte order of the host, a value."""
    octets = decoding.octets
    kinds = np.full(len(headers), Kind.MALFORMED, np.uint8)
    positions = layer.at + 4
    left: Ints = np.arange(len(headers))
    for _ in range(MAX_ATTRIBUTES):
        left = left[positions[left] + 4 <= layer.end[left]]
        if not len(left):
            break
        start = positions[left]
        first, second, third, fourth = (octets[start + n].astype(np.int64) for n in range(4))
        length = np.where(third == 0, first << 8 | second, second << 8 | first)
        is_payload = (third | fourth) == NFULA_PAYLOAD
        kinds[left[is_payload]] = Kind.RAW_IP
        positions[left] = np.where(is_payload, start + 4, start + (length + 3 & ~3))
        left = left[~is_payload & (length >= 4)]
    return Step(kinds, positions, layer.stop)


def _linked(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle a header that has its length, and the link type of what follows (PKTAP, PPI)."""
    size = headers["length"].astype(np.int64)
    numbers = np.minimum(headers["link"], 0xFFFF)
    kinds = LINKS[numbers]
    kinds[size < headers.dtype.itemsize] = Kind.MALFORMED
    return Step(kinds, layer.at + size, layer.stop, numbers)


def _monitored(headers: Headers, layer: Layer, _: Decoding) -> Step:
    """Handle a header in front of 802.11 that has its length (radiotap, AVS)."""
    size = headers["length"].astype(np.int64)
    kinds = np.full(len(headers), Kind.IEEE802_11, np.uint8)
    kinds[size < headers.dtype.itemsize] = Kind.MALFORMED
    return Step(kinds, layer.at + size, layer.stop)


def _ipnet(headers: Headers, layer: Layer, _: Decoding) -> Step:
    return Step(FAMILIES[headers["family"]], layer.at + 24, layer.stop)


def _ieee802_11(headers: Headers, layer: Layer, decoding: Decoding) -> Step:
    """Handle an 802.11 frame; those that are encrypted, fragments or aggregates are skipped."""
    control, flags = headers["control"], headers["flags"]
    has_qos = (control & QOS) != 0
    size = 24 + np.where(flags & TO_AND_FROM == TO_AND_FROM, 6, 0)
    qos = layer.at + size
    size = size + np.where(has_qos, 2, 0) + np.where(has_qos & ((flags & ORDER) != 0), 4, 0)
    kinds = np.full(len(headers), Kind.LLC, np.uint8)
    skipped = (flags & (PROTECTED | MORE_FRAGMENTS)) != 0
    skipped |= (_octets(decoding, layer.at + 22, layer.end) & 15) != 0  # a later fragment
    skipped |= has_qos & ((_octets(decoding, qos, layer.end) & AGGREGATE) != 0)
    kinds[skipped] = Kind.SKIPPED
    kinds[(control >> 2 & 3 != DATA_FRAME) | ((control & NO_DATA) != 0)] = Kind.OTHER
    return Step(kinds, layer.at + size, layer.stop, flags & PROTECTED)


def _octets(decoding: Decoding, positions: Ints, end: Ints) -> Ints:
    """Return the byte at each offset, 0 where it was not captured."""
    octets = np.zeros(len(positions), np.int64)
    whole = positions < end
    octets[whole] = decoding.octets[positions[whole]]
    return octets


LINK_HANDLERS: Final[dict[Kind, Callable[[Headers, Layer, Decoding], Step]]] = {
    Kind.PPP: _ppp,
    Kind.PPP_PROTOCOL: _ppp_protocol,
    Kind.NFLOG: _nflog,
    Kind.PKTAP: _linked,
    Kind.PPI: _linked,
    Kind.RADIOTAP: _monitored,
    Kind.AVS: _monitored,
    Kind.IPNET: _ipnet,
    Kind.IEEE802_11: _ieee802_11,
}
