"""Packets that tools print as text: `tcpdump -X`, `tshark -x`, dumps.

`tcpdump -x`, `-xx`, `-X` and `-XX`, `tshark -x` with `-P` or `-V` or alone, and dumps of packets
without a line in front. Lines that are not of a dump are passed over, except for times. The link
type is that which the bytes fit: the text does not say it.

    line with a time, or any other
        0x0000:  4500 003c ...      --> PrintedPacket
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .dump_rows import DumpRow, dump_row
from .splitter import PrintedPacket, Splitter
from .times import TIME, Times

_TCPDUMP: Final = r"(?:\S+ +(?:In|Out|B|M|P) +)?(?:IP6? |ARP|ethertype|(?:[0-9a-f]{2}:){5})"
_TSHARK: Final = r" *\S+ (?:\xe2\x86\x92|->) \S"
SUMMARY: Final = re.compile(
    rf"{TIME.pattern}(?:{_TCPDUMP}|{_TSHARK})|Frame \d+: \d+ bytes on wire "
)
"""A line about a packet of tcpdump (its time, interface with `-i any`, protocol) or tshark."""
OTHER_BYTES: Final = re.compile(r"(?!Frame )\w[\w ]{0,60} \(\d+ bytes\):\s*")
"""A heading of tshark above a dump of bytes that are not those of a packet, but made of several."""

MIN_BYTES: Final = 21
"""Bytes of a packet at least: of a header of IP, or up to one."""
MAX_BYTES: Final = 1 << 18
"""Bytes of a packet at most: what libpcap writes."""
MAX_LINE: Final = 1 << 10
"""Characters of a line of a dump, of at most 16 to 64 bytes and their text; longer ones are not."""

VERSIONS: Final = {0x0800: 4, 0x86DD: 6}
"""EtherType of IP -> the version in its header."""
OTHERS: Final = frozenset({0x8100, 0x88A8, 0x8847, 0x8848, 0x8864})
"""EtherTypes of what may be between Ethernet and IP: VLAN tags, MPLS, PPPoE."""
FAMILIES: Final = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
"""Address family, in front of packets of a loopback interface of BSD and macOS -> as VERSIONS."""
NULL: Final = 0
RAW: Final = 101
HEADERS: Final = {1: (12, 14), 113: (14, 16), 276: (0, 20)}
"""Link type (Ethernet, Linux cooked) -> where the EtherType is, and the header of IP."""


def link_type(data: bytes) -> int | None:
    """Return the link type that the first bytes of a packet fit."""
    if len(data) < MIN_BYTES:
        return None
    for link, (at, header) in HEADERS.items():
        kind = int.from_bytes(data[at : at + 2], "big")
        if kind in OTHERS or VERSIONS.get(kind) == data[header] >> 4:
            return link
    family = min(int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big"))
    if FAMILIES.get(family) == data[4] >> 4:
        return NULL
    size = int.from_bytes(data[2:4], "big")
    is_ip4 = 0x45 <= data[0] <= 0x4F and size >= 20
    return RAW if is_ip4 or data[0] >> 4 == 6 else None


class PrintedPackets(Splitter):
    """Splits text into packets, part by part; it holds one line, and one packet."""

    def __init__(self) -> None:
        super().__init__(MAX_LINE)
        self._data = bytearray()
        self._begin = 0
        self._problem = ""
        self._times = Times()
        self._time_ns: int | None = None
        self._is_other = self._in_other = False

    def _line(self, position: int, line: bytes) -> Iterator[PrintedPacket]:
        """Handle a line; one that is too long is none of a dump."""
        yield from self._handle(position, line.decode("latin-1"))

    def _handle(self, position: int, text: str) -> Iterator[PrintedPacket]:
        row = dump_row(text) if len(text) <= MAX_LINE else None
        if row is None or not row.data:
            yield from self._end(position)
            if text.strip():
                self._is_other = OTHER_BYTES.fullmatch(text) is not None
                time_ns = self._times.read(text)
                self._time_ns = self._time_ns if time_ns is None else time_ns
            return
        if row.offset == 0:
            yield from self._end(position)
            self._begin = position
            self._in_other, self._is_other = self._is_other, False
        if not self._in_other and not self._problem:
            self._add(row)

    def _add(self, row: DumpRow) -> None:
        """Add a line of a packet, or note what is wrong with it."""
        if row.offset > len(self._data):
            self._problem = f"offset {row.offset:#x} does not follow {len(self._data):#x}"
        elif row.offset + len(row.data) > MAX_BYTES:
            self._problem = f"more than {MAX_BYTES} bytes in a packet"
        else:
            del self._data[row.offset :]  # text behind the last bytes may look like bytes
            self._data += row.data

    def _end(self, _: int) -> Iterator[PrintedPacket]:
        """Return the packet whose lines have ended, if there is one."""
        if self._data or self._problem:
            data = bytes(self._data)
            yield PrintedPacket(data, link_type(data), self._time_ns, self._problem, self._begin)
            self._data, self._problem, self._time_ns = bytearray(), "", None
