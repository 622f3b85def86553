"""Makes a capture of packets that a tool printed as text.

`tcpdump -x`, `-xx`, `-X` and `-XX`, `tshark -x`, and dumps of packets without a line in front.
Lines that are not of a dump are passed over, except for the times of tcpdump. The link type is that
which the bytes fit: the text does not say it.

    line with a time, or any other
        0x0000:  4500 003c ...      --> a packet --> a block of pcapng, with its time or without
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kafkawire.magic_numbers import PCAPNG

from ..hex_text import HexError, dump_row

TIME: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d )?(?P<time>\d\d:\d\d:\d\d)\.(?P<fraction>\d{6}|\d{9}) "
)
SUMMARY: Final = re.compile(
    TIME.pattern + r"(?:\S+ +(?:In|Out|B|M|P) +)?(?:IP6? |ARP|ethertype|(?:[0-9a-f]{2}:){5})"
)
"""A line of tcpdump about a packet: its time, its interface with `-i any`, its protocol."""
OTHER_BYTES: Final = re.compile(r"(?!Frame )\w[\w ]* \(\d+ bytes\):\s*")
"""A heading of tshark above bytes that are not those of a packet, but made of several."""

DAY_AND_TIME: Final = "%Y-%m-%d %H:%M:%S"

MIN_BYTES: Final = 21
"""Bytes of a packet at least: of a header of IP, or up to one."""

MAX_LINES: Final = 64
"""Lines in which the first packet is sought."""

VERSIONS: Final = {0x0800: 4, 0x86DD: 6}
"""EtherType of IP -> the version in its header."""
TAGS: Final = frozenset({0x8100, 0x88A8})
"""EtherTypes of VLAN tags."""
RAW: Final = 101
HEADERS: Final = {1: (12, 14), 113: (14, 16), 276: (0, 20)}
"""Link type (Ethernet, Linux cooked) -> where the EtherType is, and the header of IP."""


class TextPacket(NamedTuple):
    """A packet; time_ns is None if the text has none in front of it."""

    data: bytes
    time_ns: int | None


def is_packet_text(head: str) -> bool:
    """Whether text begins like printed packets."""
    if SUMMARY.match(head):
        return True
    lines = head.splitlines()[:MAX_LINES]
    first = next(_packets(lines, strict=False), None)
    return first is not None and link_type(first.data) is not None


def as_capture(text: str) -> bytes:
    """Return the packets in text as pcapng; HexError if it has none, or lines are missing."""
    blocks: list[bytes] = []
    current = None
    for packet in _packets(text.splitlines()):
        link = link_type(packet.data) or current
        if link is None:
            raise HexError("the first packet is neither Ethernet, Linux cooked nor IP")
        if link != current:
            current = link
            blocks.append(_block(1, struct.pack("<HHI", link, 0, 0) + NANOSECONDS, SECTION))
        blocks.append(_packet_block(packet))
    if not blocks:
        raise HexError(
            "no bytes of packets: print them with tcpdump -X, or write them with -w FILE"
        )
    return b"".join(blocks)


def link_type(data: bytes) -> int | None:
    """Return the link type that the first bytes of a packet fit."""
    if len(data) < MIN_BYTES:
        return None
    for link, (at, header) in HEADERS.items():
        kind = int.from_bytes(data[at : at + 2], "big")
        if kind in TAGS or VERSIONS.get(kind) == data[header] >> 4:
            return link
    size = int.from_bytes(data[2:4], "big")
    is_ip4 = 0x45 <= data[0] <= 0x4F and size >= 20
    return RAW if is_ip4 or data[0] >> 4 == 6 else None


def _packets(lines: Iterable[str], *, strict: bool = True) -> Iterator[TextPacket]:
    """Split lines into packets. strict: raise HexError where lines of one are missing."""
    data, time_ns, passed_over = bytearray(), None, False
    for line in lines:
        row = dump_row(line)
        if row is None or not row.data:
            if data:
                yield TextPacket(bytes(data), time_ns)
                data, time_ns = bytearray(), None
            if line.strip():
                passed_over = OTHER_BYTES.fullmatch(line) is not None
                time_ns = _time(line, time_ns)
            continue
        if row.offset == 0 and data:
            yield TextPacket(bytes(data), time_ns)
            data, time_ns = bytearray(), None
        if passed_over:
            continue
        if row.offset > len(data):
            if strict:
                raise HexError(
                    f"offset {row.offset:#x} does not follow {len(data):#x}: {line[:40]}"
                )
            return
        del data[row.offset :]  # text behind the last bytes may look like bytes
        data += row.data
    if data:
        yield TextPacket(bytes(data), time_ns)


def _time(line: str, before: int | None) -> int | None:
    """Return the time in front of a line, without a date in 1970; `before` if there is none."""
    match = TIME.match(line)
    if match is None:
        return before
    day = (match["date"] or "1970-01-01 ") + match["time"]
    try:
        seconds = int(datetime.strptime(day, DAY_AND_TIME).replace(tzinfo=UTC).timestamp())
    except ValueError:  # such as 25:00:00
        return before
    return max(0, seconds) * 10**9 + int(match["fraction"].ljust(9, "0"))


def _block(kind: int, body: bytes, before: bytes = b"") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return before + struct.pack("<I", kind) + size + body + size


SECTION: Final = _block(
    int.from_bytes(PCAPNG, "little"), struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
)
NANOSECONDS: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
"""The option for times in nanoseconds, and the end of options."""


def _packet_block(packet: TextPacket) -> bytes:
    """Write a block of a packet: an enhanced one, or a simple one, which has no time."""
    data, size = packet.data, len(packet.data)
    if packet.time_ns is None:
        return _block(3, struct.pack("<I", size) + data)
    high, low = divmod(packet.time_ns, 1 << 32)
    return _block(6, struct.pack("<IIIII", 0, high, low, size, size) + data)
