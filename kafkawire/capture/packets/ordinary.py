"""Parses ordinary packets of a pcap, without numpy: the interpreted version of `ordinary.c`.

The segments are those that `parser` finds. A block is left to it if a packet in it is not TCP, nor
known to carry none (`kinds`): with VLAN tags, in a tunnel, as a fragment, behind extension headers,
of an unknown protocol, with a truncated header.

    Ethernet | Linux cooked | raw IP --> IPv4 | IPv6 --> TCP
"""

from __future__ import annotations

import sys
from typing import Final, final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i32_le,
    read_i64_be,
    read_i64_le,
    write_i16_le,
    write_i64_le,
)
from mypy_extensions import i64

from ..files.packet_headers import OFFSET, SECOND
from .options import mss_of

LITTLE: Final = sys.byteorder == "little"
"""Whether numpy makes the same keys."""

ETHERNET: Final = 1
COOKED: Final = 113
COOKED_2: Final = 276
LINKS: Final = frozenset({ETHERNET, 12, 14, 101, COOKED, COOKED_2})
"""The link types that are read here; those without a name are raw IP."""

IPV4: Final = 0x0800
IPV6: Final = 0x86DD
MAX_LENGTH: Final = 1500
"""An EtherType up to this is the length of an 802.3 frame."""

SNAP: Final = 0xAAAA

TCP: Final = 6
UDP: Final = 17

SYN: Final = 0x02
WINDOW_SHIFT: Final = 16
"""Where the receive window begins in the flags of a segment (see `segment_rows`)."""

WIREGUARD: Final = frozenset({51820, 51871})
"""Ports that both sides of WireGuard have."""

PROTOCOLS4_AT: Final = 8192
PROTOCOLS6_AT: Final = 8224
PORTS_AT: Final = 8256
"""Where the bitmaps of `kinds.passed_over` begin, behind that of EtherTypes."""

MAPPED: Final = 0xFFFF_0000_0000
"""The low half of the address ::ffff:0.0.0.0."""


def ordinary_segments(
    data: bytes,
    offsets: bytes,
    header_bytes: int,
    nanoseconds: int,
    is_big: bool,
    link: int,
    first: int,
    passed_over: bytes,
) -> tuple[bytes, bytes] | None:
    """Parse the packets of a block; return keys and numbers of `SegmentRows`.

    offsets: those of the packet headers in the data, as little-endian int64. nanoseconds: of a
    fraction of a second. is_big: whether packet headers are big-endian. first: the number of the
    first packet. passed_over: see `kinds`. None if a packet is not ordinary; IndexError for one
    that is outside of the data.
    """
    if link not in LINKS or not LITTLE:
        return None
    packets = _Packets(data, link, passed_over)
    for position in range(0, len(offsets), OFFSET):
        start = read_i64_le(offsets, position)
        if start < 0 or header_bytes < OFFSET * 2 or start > len(data) - header_bytes:
            raise IndexError("packet outside of the data")
        seconds, fraction = _uint32(data, start, is_big), _uint32(data, start + 4, is_big)
        packets.start = start + header_bytes
        packets.end = packets.start + _uint32(data, start + 8, is_big)
        packets.stop = packets.start + _uint32(data, start + 12, is_big)
        packets.packet = first + position // OFFSET
        packets.time_ns = seconds * SECOND + fraction * nanoseconds
        if packets.end > len(data):
            raise IndexError("packet outside of the data")
        if not packets.add():
            return None
    return packets.keys.getvalue(), packets.numbers.getvalue()


def _uint32(data: bytes, position: i64, big: bool) -> i64:
    return i64(read_i32_be(data, position) if big else read_i32_le(data, position)) & 0xFFFFFFFF


def _uint16(data: bytes, position: i64) -> i64:
    return i64(read_i16_be(data, position)) & 0xFFFF


@final
class _Packets:
    """Keys and numbers of the segments so far, and the next packet.

    start, end: its captured bytes in `data`. stop: the end of the packet on the wire. packet,
    time_ns: its number and time. at: the header to be read.
    """

    def __init__(self, data: bytes, link: int, passed_over: bytes) -> None:
        self.start: i64 = 0
        self.end: i64 = 0
        self.stop: i64 = 0
        self.packet: i64 = 0
        self.time_ns: i64 = 0
        self._data: bytes = data
        self._link: i64 = link
        self._passed_over: bytes = passed_over
        self.keys: BytesWriter = BytesWriter()
        self.numbers: BytesWriter = BytesWriter()

    def add(self) -> bool:  # noqa: PLR0911 - one for each way to be no TCP
        """Add the segment of the packet, if it has one; False if it is not ordinary."""
        data, position, link = self._data, self.start, self._link
        kind: i64 = 0
        if self.stop == position and self.end == position:
            return True
        if link == ETHERNET or link == COOKED:  # noqa: SIM109 - a tuple would box the link
            position += 14 if link == ETHERNET else 16
            if position > self.end:
                return False
            kind = _uint16(data, position - 2)
        elif link == COOKED_2:
            position += 20
            if position > self.end:
                return False
            kind = _uint16(data, position - 20)
        elif position >= self.end:
            return False
        else:
            version: i64 = data[position] >> 4
            kind = IPV4 if version == 4 else IPV6 if version == 6 else -1
        if kind == IPV4:
            return self._add_ip4(position)
        if kind == IPV6:
            return self._add_ip6(position)
        if link == ETHERNET and 0 <= kind <= MAX_LENGTH:  # LLC; SNAP may be in front of IP
            return position + 3 <= self.end and _uint16(data, position) not in (SNAP, 0x0606)
        return kind >= 0 and self._is_set(0, kind)

    def _is_set(self, start: i64, number: i64) -> bool:
        """Whether a bit of a bitmap is set."""
        bits: i64 = self._passed_over[start + (number >> 3)]
        return (bits >> (number & 7)) & 1 != 0

    def _add_ip4(self, header: i64) -> bool:
        """Add the segment of an IPv4 packet (RFC 791)."""
        data = self._data
        if header + 20 > self.end:
            return False
        version: i64 = data[header]
        behind = header + (version & 15) * 4
        length = _uint16(data, header + 2)
        stop = header + length if length else self.stop  # 0: segmentation offload
        if version < 0x45 or version > 0x4F or stop < behind:
            return False
        if _uint16(data, header + 6) & 0x3FFF:
            return False  # a fragment
        protocol: i64 = data[header + 9]
        if protocol != TCP:
            return self._is_other(PROTOCOLS4_AT, protocol, behind)
        if not self._add_tcp(behind, stop):
            return False
        keys = self.keys
        write_i64_le(keys, 0)
        write_i64_le(keys, MAPPED | _uint32(data, header + 12, True))
        write_i16_le(keys, read_i16_be(data, behind))
        write_i64_le(keys, 0)
        write_i64_le(keys, MAPPED | _uint32(data, header + 16, True))
        write_i16_le(keys, read_i16_be(data, behind + 2))
        return True

    def _add_ip6(self, header: i64) -> bool:
        """Add the segment of an IPv6 packet (RFC 8200)."""
        data = self._data
        behind = header + 40
        if behind > self.end or data[header] >> 4 != 6:
            return False
        length = _uint16(data, header + 4)
        protocol: i64 = data[header + 6]
        if protocol != TCP:
            return self._is_other(PROTOCOLS6_AT, protocol, behind)
        if not self._add_tcp(behind, behind + length if length else self.stop):
            return False
        keys = self.keys
        write_i64_le(keys, read_i64_be(data, header + 8))
        write_i64_le(keys, read_i64_be(data, header + 16))
        write_i16_le(keys, read_i16_be(data, behind))
        write_i64_le(keys, read_i64_be(data, header + 24))
        write_i64_le(keys, read_i64_be(data, header + 32))
        write_i16_le(keys, read_i16_be(data, behind + 2))
        return True

    def _is_other(self, start: i64, protocol: i64, header: i64) -> bool:
        """Whether a packet carries no TCP. start: of the bitmap of protocols."""
        if protocol != UDP:
            return self._is_set(start, protocol)
        data = self._data
        if header + 8 > self.end:
            return False
        destination = _uint16(data, header + 2)
        if destination in WIREGUARD and _uint16(data, header) == destination:
            return False
        return not self._is_set(PORTS_AT, destination)

    def _add_tcp(self, header: i64, stop: i64) -> bool:
        """Add a segment (RFC 9293), without its key; False if its header is cut or malformed."""
        data, end = self._data, self.end
        if header + 20 > end:
            return False
        words: i64 = data[header + 12] >> 4
        payload = header + words * 4
        if words < 5 or payload > stop:
            return False
        size = stop - payload
        captured = end - payload
        numbers = self.numbers
        write_i64_le(numbers, self.packet)
        write_i64_le(numbers, self.time_ns)
        write_i64_le(numbers, _uint32(data, header + 4, True))
        write_i64_le(numbers, _uint32(data, header + 8, True))
        write_i64_le(numbers, payload)
        write_i64_le(numbers, 0 if captured < 0 else min(captured, size))
        write_i64_le(numbers, size)
        flags: i64 = data[header + 13]
        window = _uint16(data, header + 14)
        if flags & SYN:
            window = mss_of(data[header + 20 : min(payload, end)])
        write_i64_le(numbers, flags | window << WINDOW_SHIFT)
        return True
