"""Packets that a tool printed as text, and how to recognise them.

`tcpdump -x`, `-xx`, `-X` and `-XX`, `tshark -x`, and dumps of packets without a line in front.
Lines that are not of a dump are passed over, except for the times of tcpdump.

    line with a time, or any other
        0x0000:  4500 003c ...      --> Printed(data, time, problem)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from .dump_rows import DumpRow, dump_row

TIME: Final = re.compile(
    r"(?:\s{0,10}\d{1,10} +|\s{1,10}Epoch (?:Arrival )?Time: )?"
    r"(?:(?P<date>\d{4}-\d\d-\d\d )?(?P<time>\d\d:\d\d:\d\d)|(?P<seconds>\d{1,10}))"
    r"\.(?P<fraction>\d{3,9})\s"
)
"""The time in front of a line; tshark has the number of the packet before it, or what it is."""
_TCPDUMP: Final = r"(?:\S+ +(?:In|Out|B|M|P) +)?(?:IP6? |ARP|ethertype|(?:[0-9a-f]{2}:){5})"
_TSHARK: Final = r" *\S+ (?:\xe2\x86\x92|->) \S"
SUMMARY: Final = re.compile(
    rf"{TIME.pattern}(?:{_TCPDUMP}|{_TSHARK})|Frame \d+: \d+ bytes on wire "
)
"""A line about a packet of tcpdump (its time, interface with `-i any`, protocol) or tshark."""
OTHER_BYTES: Final = re.compile(r"(?!Frame )\w[\w ]{0,60} \(\d+ bytes\):\s*")
"""A heading of tshark above a dump of bytes that are not those of a packet, but made of several."""

DAY_NS: Final = 86_400 * 10**9
END_OF_TIME_NS: Final = 1 << 63

MIN_BYTES: Final = 21
"""Bytes of a packet at least: of a header of IP, or up to one."""
MAX_BYTES: Final = 1 << 18
"""Bytes of a packet at most: what libpcap writes."""
MAX_LINE: Final = 1 << 10
"""Characters of a line of a dump, of at most 16 to 64 bytes and their text; longer ones are not."""

HEAD: Final = 1 << 15
"""Bytes of a file in which the first packet must begin: `tshark -V` describes it first."""
STEP: Final = 1 << 12
"""Bytes of a head of which a few more change nothing."""

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

NO_BYTES: Final = (
    "lines about packets without their bytes: print them with tcpdump -X or tshark -x, or write "
    "them with -w FILE"
)
NO_LINK_TYPE: Final = (
    "packets as text, with a header that is none of Ethernet, Linux cooked and IP: print them with "
    "tcpdump -X, which leaves it out, or write them with -w FILE"
)


class Printed(NamedTuple):
    """A packet.

    time_ns: None if the text has none in front of it. problem: which of its lines is missing; its
    data is what comes before; "" for none. position: where its dump begins in the text.
    """

    data: bytes
    time_ns: int | None
    problem: str
    position: int


def is_printed(head: bytes) -> bool:
    """Whether a file begins with printed packets. head: its first bytes, at most HEAD count."""
    return any(link_type(each.data) is not None for each in _packets_of(head))


def why_not_printed(head: bytes) -> str:
    """Return why a file that begins with lines about packets is no capture; "" if it does not."""
    if SUMMARY.match(head[:HEAD].decode("latin-1")) is None:
        return ""
    has_bytes = any(len(each.data) >= MIN_BYTES for each in _packets_of(head))
    return NO_LINK_TYPE if has_bytes else NO_BYTES


def more_of_text(head: bytes, more: Iterator[bytes]) -> bytes:
    """Read on in a file until packets are recognised in it, if it begins as text does.

    head: its first bytes. Returns as many as are needed, or all.
    """
    tried = 0
    while _is_text(head) and len(head) < HEAD:
        if len(head) < STEP or len(head) >= tried + tried // 4:  # a pipe may bring byte by byte
            tried = len(head)
            if is_printed(head):
                break
        if not (part := next(more, b"")):
            break
        head += part
    return head


def _is_text(head: bytes) -> bool:
    return not any(byte < 0x20 and byte not in b"\t\n\r" for byte in head[:STEP])


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


def _packets_of(head: bytes) -> Iterator[Printed]:
    packets = PrintedPackets()
    yield from packets.feed(head[:HEAD])
    yield from packets.finish()


class PrintedPackets:
    """Splits text into packets, part by part; it holds one line, and one packet."""

    def __init__(self) -> None:
        self._line = b""
        self._line_size = self._position = 0
        self._data = bytearray()
        self._begin = 0
        self._problem = ""
        self._times = _Times()
        self._time_ns: int | None = None
        self._is_other = self._in_other = False

    def feed(self, text: bytes) -> Iterator[Printed]:
        """Handle the next bytes of the text; exhaust the iterator before the next call."""
        *lines, rest = text.split(b"\n")
        for line in lines:
            yield from self._handle(self._line + line)
            self._position += self._line_size + len(line) + 1
            self._line, self._line_size = b"", 0
        self._line = (self._line + rest)[: MAX_LINE + 1]
        self._line_size += len(rest)

    def finish(self) -> Iterator[Printed]:
        """Handle the end of the text."""
        yield from self._handle(self._line)
        yield from self._end()

    def _handle(self, line: bytes) -> Iterator[Printed]:
        text = line.decode("latin-1")
        row = dump_row(text) if len(text) <= MAX_LINE else None
        if row is None or not row.data:
            yield from self._end()
            if text.strip():
                self._is_other = OTHER_BYTES.fullmatch(text) is not None
                self._time_ns = self._times.read(text, self._time_ns)
            return
        if row.offset == 0:
            yield from self._end()
            self._begin = self._position
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

    def _end(self) -> Iterator[Printed]:
        """Return the packet whose lines have ended, if there is one."""
        if self._data or self._problem:
            yield Printed(bytes(self._data), self._time_ns, self._problem, self._begin)
            self._data, self._problem, self._time_ns = bytearray(), "", None


class _Times:
    """Reads the times in front of lines; those without a date begin in 1970."""

    def __init__(self) -> None:
        self._last_ns = 0
        self._days = 0

    def read(self, line: str, before: int | None) -> int | None:
        """Return the time in front of a line, in nanoseconds; `before` if there is none."""
        match = TIME.match(line)
        time_ns = None if match is None else self._time(match)
        return before if time_ns is None or time_ns >= END_OF_TIME_NS else time_ns

    def _time(self, match: re.Match[str]) -> int | None:
        """Return the time of a match; None if there is no such time."""
        fraction = int(match["fraction"].ljust(9, "0"))
        if match["seconds"]:
            return int(match["seconds"]) * 10**9 + fraction
        try:
            day = datetime.fromisoformat((match["date"] or "1970-01-01 ") + match["time"])
        except ValueError:  # such as 25:00:00
            return None
        time_ns = int(day.replace(tzinfo=UTC).timestamp()) * 10**9 + fraction
        return max(0, time_ns) if match["date"] else self._undated(time_ns)

    def _undated(self, time_ns: int) -> int:
        """Add the midnights that have passed: where times jump by more than half a day."""
        if time_ns < self._last_ns - DAY_NS // 2:
            self._days += 1
        elif time_ns > self._last_ns + DAY_NS // 2:
            self._days = max(0, self._days - 1)
        self._last_ns = time_ns
        return time_ns + self._days * DAY_NS
