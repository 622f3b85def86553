"""The packet headers of a pcap: their format, and blocks of packets whose headers are not decoded.

seconds | fraction | captured | original | (8 bytes more in Kuznetzov's variant)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from .blocks import PacketBlock

SECOND: Final = 10**9
OFFSET: Final = 8
"""Bytes of an offset."""


class PacketHeader(NamedTuple):
    """The fields of one packet header."""

    seconds: int
    fraction: int
    captured: int
    original: int


class Shape(NamedTuple):
    """The format of packet headers: byte order, size, fractions of a second, longest packet."""

    order: str
    size: int
    fractions: int
    longest: int

    @property
    def nanoseconds(self) -> int:
        """The nanoseconds of a fraction."""
        return SECOND // self.fractions

    def header(self, data: bytes, position: int) -> PacketHeader:
        """Decode one header."""
        return PacketHeader(*struct.unpack_from(self.order + "4I", data, position))

    def dtype(self) -> Any:
        """Return the structure of a header, a dtype of numpy."""
        import numpy as np

        fields = [(name, self.order + "u4") for name in PacketHeader._fields]
        return np.dtype(fields + [("more", f"V{self.size - 16}")] * (self.size > 16))


@dataclass(frozen=True, slots=True)
class PcapBlock:
    """Packets of a pcap, as a `PacketBlock` has them.

    offsets: those of the packet headers in `data`, as little-endian int64.
    """

    data: bytes
    position: int
    first: int
    offsets: bytes
    shape: Shape
    link: int

    def __len__(self) -> int:
        return len(self.offsets) // OFFSET

    def __getitem__(self, rows: slice) -> PcapBlock:
        """Return a range of the packets; the slice has step 1."""
        start, end, _ = rows.indices(len(self))
        offsets = self.offsets[start * OFFSET : end * OFFSET]
        return replace(self, first=self.first + start, offsets=offsets)

    def header(self, row: int) -> PacketHeader:
        """Decode the header of a packet."""
        (position,) = struct.unpack_from("<q", self.offsets, row * OFFSET)
        return self.shape.header(self.data, position)

    @property
    def first_ns(self) -> int:
        """The time of the first packet."""
        header = self.header(0)
        return header.seconds * SECOND + header.fraction * self.shape.nanoseconds

    def numbered(self, first: int) -> PcapBlock:
        """Return the packets with other numbers, from `first` on."""
        return replace(self, first=first)

    def columns(self) -> PacketBlock:
        """Decode the headers into columns."""
        import numpy as np

        from .columns import take_rows

        offsets: Any = np.frombuffer(self.offsets, "<i8")
        headers = take_rows(self.data, offsets, self.shape.dtype())
        fraction = headers["fraction"].astype(np.int64) * self.shape.nanoseconds
        return PacketBlock(
            data=self.data,
            position=self.position,
            first=self.first,
            ts=headers["seconds"].astype(np.int64) * SECOND + fraction,
            start=offsets + self.shape.size,
            captured=headers["captured"].astype(np.int64),
            original=headers["original"].astype(np.int64),
            link=np.full(len(offsets), self.link, np.int64),
        )
