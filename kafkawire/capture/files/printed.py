"""Packets that tools print as text, as a capture: their bytes, and times if there are any.

    text --> Splitter --> blocks of pcapng --> PcapngDecoder --> packet blocks

A packet some of whose lines are missing is left out, and is a problem.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ...errors import CaptureError, CorruptCapture
from ...magic_numbers import PCAPNG
from ...printed.packets import RAW
from ...printed.recognition import NO_BYTES
from ...printed.splitter import PrintedPacket, Splitter
from .blocks import PacketBlock
from .pcapng import PcapngDecoder
from .pcapng_blocks import ENHANCED_PACKET, INTERFACE, SIMPLE_PACKET


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


SECTION: Final = _block(
    int.from_bytes(PCAPNG, "little"), struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
)
NANOSECONDS: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
"""The option for times in nanoseconds, and the end of options."""


class PrintedDecoder:
    """Decodes printed packets, as a `CaptureDecoder`."""

    def __init__(self, splitter: Splitter) -> None:
        self.problems: list[CaptureError] = []
        self.key_logs: list[bytes] = []
        self._splitter = splitter
        self._link: int | None = None
        self._pcapng = PcapngDecoder()

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Handle the next bytes of the text."""
        yield from self._decode(self._splitter.feed(chunk))

    def give_back(self) -> int:
        """Return 0: a line, or a packet, that is not complete is kept."""
        return 0

    def finish(self) -> Iterator[PacketBlock]:
        """Handle the end of the text."""
        yield from self._decode(self._splitter.finish())
        if self._link is None and not self.problems:
            self.problems.append(CorruptCapture(NO_BYTES))

    def _decode(self, packets: Iterable[PrintedPacket]) -> Iterator[PacketBlock]:
        yield from self._pcapng.feed(b"".join(map(self._written, packets)))

    def _written(self, packet: PrintedPacket) -> bytes:
        """Write a packet as a block, after its interface if its link type is another one."""
        if packet.problem:
            self.problems.append(
                CorruptCapture(f"text that is not read: {packet.problem}", packet.position)
            )
            return b""
        link, interface = packet.link, b""
        if link is None:
            link = RAW if self._link is None else self._link
        if link != self._link:
            self._link = link
            interface = SECTION + _block(INTERFACE, struct.pack("<HHI", link, 0, 0) + NANOSECONDS)
        size = len(packet.data)
        if packet.time_ns is None:
            return interface + _block(SIMPLE_PACKET, struct.pack("<I", size) + packet.data)
        header = struct.pack("<IIIII", 0, *divmod(packet.time_ns, 1 << 32), size, size)
        return interface + _block(ENHANCED_PACKET, header + packet.data)
