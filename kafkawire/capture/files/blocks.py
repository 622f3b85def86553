"""Packet blocks: thousands of captured packets over one buffer; the input of decoders.

A block has all packets of its range of the file, in file order and with consecutive numbers;
it copies none. Bytes read are joined only when enough are available, so a large packet in small
chunks is not copied once per chunk.

A `PacketBlock` has the packets as columns; numpy makes them, so a block of a pcap has the offsets
of its packet headers until something needs the columns:

    data    [ header | packet | header | packet | ... ]      bytes of the file
    start            ^                 ^                     int64, index into data
    captured         |--------|        |--------|            int64, captured length
    original         |------------|    |--------|            int64, length on the wire
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from ...errors import CaptureError

if TYPE_CHECKING:
    from .columns import Ints

NO_TIME: Final = -(1 << 63)
"""The time of a packet without a timestamp (a pcapng Simple Packet Block)."""

MAX_PACKETS: Final = 1 << 15
"""Packets in a block at most."""

MAX_PACKET_BYTES: Final = 1 << 18
"""The largest packet that libpcap writes; a larger one is accepted only if the file's snaplen
allows it.
"""


@dataclass(frozen=True, slots=True)
class PacketBlock:
    """Packets `first`, `first + 1`, ... of a file.

    position: offset in the (uncompressed) file of data[0]. ts: nanoseconds since the epoch, or
    NO_TIME. link: the link type of each packet (LINKTYPE_ registry); -1 if the file has none.
    """

    data: bytes
    position: int
    first: int
    ts: Ints
    start: Ints
    captured: Ints
    original: Ints
    link: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def first_ns(self) -> int:
        """The time of the first packet."""
        return int(self.ts[0])

    def columns(self) -> PacketBlock:
        """Return the packets as columns."""
        return self

    def numbered(self, first: int) -> PacketBlock:
        """Return the packets with other numbers, from `first` on."""
        return replace(self, first=first)

    def __getitem__(self, rows: slice) -> PacketBlock:
        """Return a range of the packets; the slice has step 1."""
        return PacketBlock(
            self.data,
            self.position,
            self.first + rows.indices(len(self))[0],
            self.ts[rows],
            self.start[rows],
            self.captured[rows],
            self.original[rows],
            self.link[rows],
        )


class Block(Protocol):
    """A `PacketBlock`, or what one can be made of."""

    @property
    def data(self) -> bytes: ...

    @property
    def first(self) -> int: ...

    def __len__(self) -> int: ...

    @property
    def first_ns(self) -> int:
        """The time of the first packet."""

    def columns(self) -> PacketBlock:
        """Return the packets as columns."""

    def numbered(self, first: int) -> Block:
        """Return the packets with other numbers, from `first` on."""

    def __getitem__(self, rows: slice) -> Block:
        """Return a range of the packets; the slice has step 1."""


class CaptureDecoder(Protocol):
    """Bytes of a capture file in, packet blocks out, as soon as their bytes are available.

    problems: the errors so far, in file order; decoding continues behind them if possible.
    key_logs: the TLS key logs in the file so far (pcapng).
    """

    problems: list[CaptureError]
    key_logs: list[bytes]

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Handle the next bytes of the file; exhaust the iterator before the next call."""

    def give_back(self) -> int:
        """Do without the incomplete packet behind the last block, if it is small.

        Returns how many of the bytes must be fed again, in front of the next ones.
        """

    def finish(self) -> Iterator[Block]:
        """Handle the end of the file."""


class InputBuffer:
    """Input bytes; position: the offset in the file of the first held byte."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._chunks: list[bytes] = []
        self._held = 0
        self._last = 0
        self._need = 0

    def __len__(self) -> int:
        return self._held

    def add(self, chunk: bytes) -> bytes | None:
        """Append a chunk; return all held bytes, or None if more are needed."""
        self._chunks.append(chunk)
        self._last = len(chunk)
        self._held += len(chunk)
        return self.peek() if self._held >= self._need else None

    def peek(self) -> bytes:
        """Return all held bytes; they are consumed by `consume` only."""
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def consume(self, start: int, need: int = 0) -> None:
        """Consume the bytes before `start`; `add` returns None until `need` bytes are held."""
        rest = self.peek()[start:]
        self.position += start
        self._chunks = [rest]
        self._held = len(rest)
        self._need = need

    def give_back(self) -> int:
        """Drop the held bytes, and return how many they are, if they are few.

        Of a chunk that brought nothing, all bytes are held; they would be read again forever.
        """
        count = self._held
        if 2 * count > self._last:
            return 0
        self._chunks.clear()
        self._held = self._need = 0
        return count
