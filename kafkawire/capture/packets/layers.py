"""Packets at headers, thousands at a time; `descent` decodes one header after the other.

A handler knows only its own header and what may follow; checksums are ignored (offloading makes
them wrong). A packet without a TCP segment ends in a Kind that gives the reason.

    link type --> ETHERNET | SLL | ... --> tags, labels --> IPV4 | IPV6 (extensions)* --> TCP
                     ^                                         ^          `--> UDP | GRE | ...
                     `--- tunnels of frames, of packets -------'                     |
                                        `--------------------------------------------'

A handler gets the headers of its packets, and returns the type and offset of the next header of
each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..files.columns import Ints, Octets
from .headers import HEADERS
from .kinds import Kind


@dataclass(slots=True)
class Layer:
    """Packets at the same type of header.

    rows: the packets, as indices into the block. at: offset of the header. end: end of the captured
    bytes. stop: end of the packet on the wire. header: the type of the header before; numbers: the
    protocol numbers in it, if the kind is SKIPPED.
    """

    kind: Kind
    rows: Ints
    at: Ints
    end: Ints
    stop: Ints
    header: Kind = Kind.OTHER
    numbers: Ints | None = None

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Layer:
        return replace(
            self,
            rows=self.rows[chosen],
            at=self.at[chosen],
            end=self.end[chosen],
            stop=self.stop[chosen],
            numbers=None if self.numbers is None else self.numbers[chosen],
        )


class Step(NamedTuple):
    """The next header of each packet: its type, its offset, and the end of the packet.

    numbers: the protocol numbers that say so, to report the unknown ones.
    """

    kinds: Octets
    at: Ints
    stop: Ints
    numbers: npt.NDArray[np.integer[Any]] | None = None


class Addresses:
    """The innermost IP addresses of each packet, as 128 bits in two halves.

    IPv4 addresses are in their IPv6-mapped form.
    """

    def __init__(self, packets: int) -> None:
        self.source_high = np.zeros(packets, np.uint64)
        self.source_low = np.zeros(packets, np.uint64)
        self.destination_high = np.zeros(packets, np.uint64)
        self.destination_low = np.zeros(packets, np.uint64)


@dataclass(frozen=True)
class Decoding:
    """What handlers need besides headers: the bytes of all packets, and what UDP ports carry."""

    data: bytes
    addresses: Addresses
    udp_ports: Octets

    @cached_property
    def octets(self) -> Octets:
        """The bytes as a column."""
        return np.frombuffer(self.data, np.uint8)


def complete_headers(layer: Layer) -> tuple[Layer, list[Layer]]:
    """Separate the packets with a complete fixed header of this layer from truncated ones."""
    whole = layer.at + HEADERS[layer.kind].itemsize <= layer.end
    if whole.all():
        return layer, []
    return layer[whole], [ended(layer[~whole], Kind.CUT)]


def ended(layer: Layer, kind: Kind) -> Layer:
    """Return packets that end at a header, with the reason."""
    return replace(layer, kind=kind, header=layer.kind)
