"""Decodes classic pcap files: a file header, then packets, each with its own header.

Damaged parts of a file are skipped, counted and reported; all packets before and behind them
are decoded.

    magic | version | zone | accuracy | snaplen | link type | packet header, packet | ...
    packet header: seconds | fraction | captured | original | (8 bytes more in Kuznetzov's variant)

Source: the IETF draft "PCAP Capture File Format"; the variants are those of libpcap and Wireshark.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ...errors import BadMagic, CaptureError, CorruptCapture, TruncatedCapture
from ...magic_numbers import (
    PCAP_IXIA_HARDWARE,
    PCAP_IXIA_SOFTWARE,
    PCAP_KUZNETZOV,
    PCAP_MICROSECONDS,
    PCAP_NANOSECONDS,
)
from .blocks import MAX_PACKET_BYTES, MAX_PACKETS, InputBuffer
from .packet_headers import OFFSET, PacketHeader, PcapBlock, Shape
from .packet_offsets import packets

if TYPE_CHECKING:
    from .resynchronisation import Search


class Variant(NamedTuple):
    """The format of a magic number.

    fractions: of a second. packet_header: its size. extra: bytes added to the file header.
    """

    fractions: int
    packet_header: int = 16
    extra: int = 0


VARIANTS: Final = {
    PCAP_MICROSECONDS: Variant(10**6),
    PCAP_NANOSECONDS: Variant(10**9),
    PCAP_KUZNETZOV: Variant(10**6, packet_header=24),
    PCAP_IXIA_HARDWARE: Variant(10**9, extra=4),
    PCAP_IXIA_SOFTWARE: Variant(10**9, extra=4),
}

FILE_HEADER: Final = 24
SEARCH_BYTES: Final = 8 * MAX_PACKET_BYTES
"""Bytes in which the next packet behind damage is searched, see `Search.find_behind_damage`: twice
as many as the headers that prove a packet can be apart.
"""

PACKETS_BEHIND_DAMAGE: Final = 64
"""Packets in the first block behind damage, then twice as many: there may be more damage."""

MAX_SNAPLEN: Final = 1 << 27


class PcapHeader(NamedTuple):
    """The file header; `order` is struct's sign of the byte order."""

    order: str
    variant: Variant
    snaplen: int
    link: int

    @property
    def size(self) -> int:
        return FILE_HEADER + self.variant.extra

    @property
    def shape(self) -> Shape:
        """The shape of its packet headers."""
        snaplen = self.snaplen if self.snaplen <= MAX_SNAPLEN else 0
        return Shape(
            self.order,
            self.variant.packet_header,
            self.variant.fractions,
            max(snaplen, MAX_PACKET_BYTES),
        )


def read_header(head: bytes) -> PcapHeader:
    """Decode the file header from the first 24 bytes or more. Raises BadMagic, TruncatedCapture."""
    for order in ("<", ">"):
        variant = VARIANTS.get(int.from_bytes(head[:4], "little" if order == "<" else "big"))
        if variant is not None:
            if len(head) < FILE_HEADER:
                raise TruncatedCapture("truncated file header", len(head))
            snaplen, link = struct.unpack_from(order + "II", head, 16)
            return PcapHeader(order, variant, snaplen, link & 0xFFFF)
    raise BadMagic(f"not a pcap file (starts with {head[:4].hex(' ')})")


class PcapDecoder:
    """Decodes a pcap file from its first byte, or from any packet if the header is given.

    position: offset in the file of the first byte fed. first: number of the first packet. seconds:
    the time of the packet before it.
    """

    def __init__(
        self,
        header: PcapHeader | None = None,
        *,
        position: int = 0,
        first: int = 1,
        seconds: int | None = None,
    ) -> None:
        self.problems: list[CaptureError] = []
        self.key_logs: list[bytes] = []
        self._header = header
        self._input = InputBuffer(position)
        self._number = first
        self._seconds = seconds
        self._damage: int | None = None
        self._searching: Search | None = None

    def feed(self, chunk: bytes) -> Iterator[PcapBlock]:
        """Handle the next bytes of the file."""
        data = self._input.add(chunk)
        if data is None:
            return
        start = 0
        if self._header is None:
            if len(data) < FILE_HEADER or len(data) < (start := read_header(data).size):
                return
            self._header = read_header(data)
        yield from self._packets(data, start, self._header.shape, ended=False)

    def give_back(self) -> int:
        """Do without an incomplete packet; returns how many bytes must be fed again."""
        return self._input.give_back() if self._damage is None else 0

    def finish(self) -> Iterator[PcapBlock]:
        """Handle the end of the file."""
        input_buffer = self._input
        if self._header is None:
            self.problems.append(TruncatedCapture("truncated file header", len(input_buffer)))
            return
        if self._damage is not None:
            yield from self._packets(input_buffer.peek(), 0, self._header.shape, ended=True)
        if len(input_buffer):
            self.problems.append(
                TruncatedCapture(
                    f"the file ends {len(input_buffer)} bytes into a packet", input_buffer.position
                )
            )

    def _packets(
        self, data: bytes, start: int, shape: Shape, *, ended: bool
    ) -> Iterator[PcapBlock]:
        limit = MAX_PACKETS
        while True:
            if self._damage is not None:
                begin = self._search(data, start, shape, ended=ended)
                if begin is None:
                    return
                start, limit = begin, PACKETS_BEHIND_DAMAGE
            big = shape.order == ">"
            offsets, end = packets(data, start, shape.size, big, shape.longest, limit)
            good = len(offsets) // OFFSET
            if good:
                yield self._block(data, offsets, shape)
            if len(data) - end >= shape.size and _is_wrong(shape.header(data, end), shape):
                start = end
            elif good == limit:
                start, limit = end, min(2 * limit, MAX_PACKETS)
                continue
            else:
                self._input.consume(end, self._needed(data, end, shape))
                return
            self._damage = self._input.position + start

    def _needed(self, data: bytes, position: int, shape: Shape) -> int:
        """Return the size of the packet at an offset, with its header, as far as known."""
        if len(data) - position < shape.size:
            return shape.size
        return shape.size + shape.header(data, position).captured

    def _block(self, data: bytes, offsets: bytes, shape: Shape) -> PcapBlock:
        """Make the block of some packets."""
        assert self._header is not None
        block = PcapBlock(
            data, self._input.position, self._number, offsets, shape, self._header.link
        )
        self._number += len(block)
        self._seconds = block.header(len(block) - 1).seconds
        return block

    def _search(self, data: bytes, start: int, shape: Shape, *, ended: bool) -> int | None:
        """Find the next packet behind damage; None if more bytes are needed, or the file ended."""
        assert self._damage is not None
        if not ended and len(data) - start < SEARCH_BYTES:
            self._input.consume(start, SEARCH_BYTES)
            return None
        if self._searching is None or self._searching.data is not data:
            from .resynchronisation import packet_search  # imports numpy

            self._searching = packet_search(data, shape, ended=ended)
        is_found, position = self._searching.find_behind_damage(
            start, SEARCH_BYTES, near=self._seconds, ended=ended
        )
        if not is_found:
            self._input.consume(position, SEARCH_BYTES)
        if is_found or ended:
            self._report(self._input.position + position if is_found else self._input.position)
        return position if is_found else None

    def _report(self, end: int) -> None:
        assert self._damage is not None
        self.problems.append(
            CorruptCapture(f"{end - self._damage} bytes are not packets", self._damage)
        )
        self._damage = None


def _is_wrong(header: PacketHeader, shape: Shape) -> bool:
    """Whether a header is invalid: a length beyond the longest packet, or only zeros."""
    return header.captured > shape.longest or not (
        header.captured or header.original or header.seconds
    )
