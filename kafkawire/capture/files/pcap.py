"""Classic pcap: a file header, then packets, each behind a header of its own.

Law: what was read before the first doubt stands; what cannot be a packet is skipped, counted and
reported.

    magic | version | zone | accuracy | snaplen | link type | packet header, packet | ...
    packet header: seconds | fraction | captured | original | (8 bytes more in Kuznetzov's variant)

Source: the IETF draft "PCAP Capture File Format"; the variants are those that libpcap and Wireshark
read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ...errors import BadMagic, CaptureError, CorruptCapture, TruncatedCapture
from .blocks import MAX_PACKET_BYTES, MAX_PACKETS, Ints, PacketBlock, take_rows
from .buffer import Inbox
from .packet_offsets import packets
from .resynchronisation import Search, Shape, looks_wrong, packet_search


class Variant(NamedTuple):
    """What a magic number says: fractions of a second, size of the packet header, bytes added to
    the file header.
    """

    fractions: int
    packet_header: int = 16
    extra: int = 0


VARIANTS: Final = {
    0xA1B2C3D4: Variant(10**6),
    0xA1B23C4D: Variant(10**9),
    0xA1B2CD34: Variant(10**6, packet_header=24),
    0x1C0001AB: Variant(10**9, extra=4),
    0x1C0001AC: Variant(10**9, extra=4),
}
"""Microseconds, nanoseconds, Kuznetzov's patched libpcap, Ixia software and hardware captures."""

FILE_HEADER: Final = 24
SEARCH_BYTES: Final = 4 * MAX_PACKET_BYTES
"""How much is collected before searching for the next packet behind damage."""

PACKETS_BEHIND_DAMAGE: Final = 64
"""How far is walked at first behind damage, then twice as far: there may be more of it."""

MAX_SNAPLEN: Final = 1 << 27


def is_pcap(head: bytes) -> bool:
    """Whether a file that begins with these 4 bytes is a pcap."""
    return any(int.from_bytes(head[:4], order) in VARIANTS for order in ("big", "little"))


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
        """What its packet headers look like."""
        snaplen = self.snaplen if self.snaplen <= MAX_SNAPLEN else 0
        return Shape(
            self.order,
            self.variant.packet_header,
            self.variant.fractions,
            max(snaplen, MAX_PACKET_BYTES),
        )


def read_header(head: bytes) -> PcapHeader:
    """Read the file header from the file's first 24 bytes or more. Raises BadMagic,
    TruncatedCapture.
    """
    for order in ("<", ">"):
        variant = VARIANTS.get(int.from_bytes(head[:4], "little" if order == "<" else "big"))
        if variant is not None:
            if len(head) < FILE_HEADER:
                raise TruncatedCapture("the file ends inside its header", len(head))
            snaplen, link = struct.unpack_from(order + "II", head, 16)
            return PcapHeader(order, variant, snaplen, link & 0xFFFF)
    raise BadMagic(f"not a pcap file: it begins with {head[:4].hex()}")


class PcapDecoder:
    """Reads a pcap from its first byte, or from any packet on if the header is given.

    position: offset in the file of the first byte fed. first: number of the first packet.
    """

    def __init__(
        self, header: PcapHeader | None = None, *, position: int = 0, first: int = 1
    ) -> None:
        self.problems: list[CaptureError] = []
        self._header = header
        self._inbox = Inbox(position)
        self._number = first
        self._seconds: int | None = None
        self._damage: int | None = None
        self._searching: Search | None = None

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Take the next bytes of the file."""
        data = self._inbox.add(chunk)
        if data is None:
            return
        start = 0
        if self._header is None:
            if len(data) < FILE_HEADER or len(data) < (start := read_header(data).size):
                return
            self._header = read_header(data)
        yield from self._packets(data, start, self._header.shape, ended=False)

    def finish(self) -> Iterator[PacketBlock]:
        """Take note that the file ends here."""
        inbox = self._inbox
        if self._header is None:
            self.problems.append(TruncatedCapture("the file ends inside its header", len(inbox)))
            return
        if self._damage is not None:
            yield from self._packets(inbox.take(), 0, self._header.shape, ended=True)
        if len(inbox):
            self.problems.append(
                TruncatedCapture(f"the file ends {len(inbox)} bytes into a packet", inbox.position)
            )

    def _packets(
        self, data: bytes, start: int, shape: Shape, *, ended: bool
    ) -> Iterator[PacketBlock]:
        limit = MAX_PACKETS
        while True:
            if self._damage is not None:
                begin = self._search(data, start, shape, ended=ended)
                if begin is None:
                    return
                start, limit = begin, PACKETS_BEHIND_DAMAGE
            found, end = packets(data, start, shape.size, shape.order == ">", limit)
            places = np.frombuffer(found, "<i8")
            good = len(places)
            if good:
                block = self._block(data, places, shape)
                good = len(block)
                yield block
            if good < len(places):
                start = int(places[good])
            elif len(data) - end >= shape.size and self._is_wrong(data, end, shape):
                start = end
            elif good == limit:
                start, limit = end, min(2 * limit, MAX_PACKETS)
                continue
            else:
                self._inbox.keep(end, self._needed(data, end, shape))
                return
            self._damage = self._inbox.position + start

    def _needed(self, data: bytes, at: int, shape: Shape) -> int:
        """Tell how many bytes the packet at an offset has, header included, as far as is known."""
        if len(data) - at < shape.size:
            return shape.size
        header = take_rows(data, np.array([at]), shape.dtype)
        return shape.size + int(header["captured"][0])

    def _is_wrong(self, data: bytes, at: int, shape: Shape) -> bool:
        return bool(looks_wrong(take_rows(data, np.array([at]), shape.dtype), shape)[0])

    def _block(self, data: bytes, places: Ints, shape: Shape) -> PacketBlock:
        """Build the block of the packets before the first whose header cannot be right."""
        assert self._header is not None
        headers = take_rows(data, places, shape.dtype)
        wrong = looks_wrong(headers, shape)
        if wrong.any():
            good = int(wrong.argmax())
            places, headers = places[:good], headers[:good]
        seconds = headers["seconds"].astype(np.int64)
        scale = 10**9 // self._header.variant.fractions
        block = PacketBlock(
            data=data,
            position=self._inbox.position,
            first=self._number,
            ts=seconds * 10**9 + headers["fraction"].astype(np.int64) * scale,
            start=places + shape.size,
            captured=headers["captured"].astype(np.int64),
            original=headers["original"].astype(np.int64),
            link=np.full(len(places), self._header.link, np.int64),
        )
        self._number += len(block)
        if len(block):
            self._seconds = int(seconds[-1])
        return block

    def _search(self, data: bytes, start: int, shape: Shape, *, ended: bool) -> int | None:
        """Find where packets begin again; None where more bytes are needed, or none come."""
        assert self._damage is not None
        if not ended and len(data) - start < SEARCH_BYTES:
            # twice as many: what is left over is copied once for as many bytes that come
            self._inbox.keep(start, 2 * SEARCH_BYTES)
            return None
        if self._searching is None or self._searching.data is not data:
            self._searching = packet_search(data, shape, ended=ended)
        found = self._searching.find(start, self._seconds)
        if found is None:
            # A packet may begin in what was searched last, but the proof of it lie further on.
            self._inbox.keep(len(data) if ended else len(data) - SEARCH_BYTES // 2, SEARCH_BYTES)
            if ended:
                self._report(self._inbox.position)
            return None
        self._report(self._inbox.position + found)
        return found

    def _report(self, end: int) -> None:
        assert self._damage is not None
        self.problems.append(
            CorruptCapture(f"{end - self._damage} bytes are no packets", self._damage)
        )
        self._damage = None
