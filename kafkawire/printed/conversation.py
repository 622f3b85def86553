"""Makes packets of what the two sides of a connection sent, for text that has no packets.

The headers have the addresses and positions that the text has, and no checksums. An address that
the text does not have is 0.0.0.1 or 0.0.0.2, and its port 1 or 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple, TypeAlias

from .packets import RAW
from .splitter import PrintedPacket

SEGMENT: Final = 1 << 15
"""Bytes of a side in a packet at most."""
SYN: Final = 0x02
PSH_ACK: Final = 0x18
STEP: Final = 0x01000193
"""Between the first sequence numbers of connections, so that none is a copy of another."""
TCP: Final = 6
Address: TypeAlias = IPv4Address | IPv6Address


class Endpoint(NamedTuple):
    """An address and port."""

    address: Address
    port: int


UNKNOWN: Final = tuple(Endpoint(IPv4Address(each), each) for each in (1, 2))
"""The endpoints of the two sides if the text has none."""


def endpoint(host: str, port: str, side: int) -> Endpoint:
    """Return an endpoint; of a host that is not an address, the unknown address of the side."""
    number = int(port) & 0xFFFF
    try:
        return Endpoint(ip_address(host.strip("[]").partition("%")[0]), number)
    except ValueError:  # a name
        return Endpoint(UNKNOWN[side].address, number)


class Conversation:
    """A connection. number: of the connection in the text. sent: how many bytes each side has sent.

    opened: whether its beginning is known, by the side 0.
    """

    def __init__(
        self, number: int, sides: tuple[Endpoint, ...] = UNKNOWN, *, opened: bool = False
    ) -> None:
        versions = {each.address.version for each in sides}
        self._sides = sides if len(versions) == 1 else UNKNOWN
        self._first = number * STEP
        self._opened = opened
        self.sent = [0, 0]

    def lose(self, side: int, count: int) -> None:
        """Step over bytes that the text does not have."""
        self.sent[side] += count

    def send(
        self, side: int, data: bytes, time_ns: int | None, position: int
    ) -> Iterator[PrintedPacket]:
        """Return the packets of bytes of a side."""
        if self._opened:
            self._opened = False
            yield PrintedPacket(self._ip(0, self._tcp(0, SYN)), RAW, time_ns, "", position)
        for start in range(0, len(data), SEGMENT):
            part = data[start : start + SEGMENT]
            segment = self._tcp(side, PSH_ACK) + part
            self.sent[side] += len(part)
            yield PrintedPacket(self._ip(side, segment), RAW, time_ns, "", position)

    def _tcp(self, side: int, flags: int) -> bytes:
        """Return the header of what a side sends next; of a SYN, its number is one less."""
        here, there = self._sides[side].port, self._sides[1 - side].port
        begin = self._first + (flags != SYN)
        sent, received = (
            (begin + each) & 0xFFFFFFFF for each in (self.sent[side], self.sent[1 - side])
        )
        if flags == SYN:
            received = 0
        return struct.pack(">HHIIBBHHH", here, there, sent, received, 0x50, flags, 0xFFFF, 0, 0)

    def _ip(self, side: int, segment: bytes) -> bytes:
        here, there = self._sides[side].address, self._sides[1 - side].address
        if here.version == 4:
            header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, TCP, 0)
        else:
            header = struct.pack(">IHBB", 6 << 28, len(segment), TCP, 64)
        return header + here.packed + there.packed + segment
