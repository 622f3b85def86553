"""pcapng: sections of blocks; interfaces are described before packets refer to them.

A block that is not understood is stepped over by its length; a block whose two lengths differ
is damage, skipped up to where blocks begin again, and reported.

    block      type | length | body ... | length            length counts the whole block, a
    multiple of 4 section    0x0A0D0D0A: byte order mark 0x1A2B3C4D; forgets all interfaces
    interface  1: link type, snaplen, options (if_tsresol, if_tsoffset) packets    6 enhanced, 3
    simple (no time), 2 the old packet block
    secrets    10: a TLS key log, in front of the packets that it decrypts

Source: the IETF draft "PCAP Next Generation (pcapng) Capture File Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import (
    CaptureError,
    CorruptCapture,
    TruncatedCapture,
    UnsupportedBlockType,
    UnsupportedLinkType,
    counted,
)
from ...magic_numbers import PCAPNG
from .blocks import MAX_PACKETS, NO_TIME, InputBuffer, PacketBlock
from .columns import Ints, kinds, take_rows
from .interfaces import Interface, read_interface
from .packet_offsets import blocks
from .pcapng_blocks import (
    INTERFACE,
    LAYOUTS,
    LEAST,
    LEAST_BLOCK,
    MAX_BLOCK,
    SECRETS,
    SECRETS_HEADER,
    SIMPLE_PACKET,
    SYSDIG,
    TLS_KEY_LOG,
    WITHOUT_PACKETS,
    block_search,
)
from .resynchronisation import Search

SEARCH_BYTES: Final = 1 << 21
"""Bytes in which the next block behind damage is searched, see `Search.find_behind_damage`."""

NO_INTERFACE: Final = -1
INCOMPLETE: Final = -1
WRONG: Final = -2
"""Returned in place of a block type."""


@dataclass(slots=True)
class Section:
    """A section with its interfaces so far; `order`: struct's character for its byte order."""

    order: str
    interfaces: list[Interface] = field(default_factory=list)


class PcapngDecoder:
    """Decodes a pcapng file from its first byte, or from any block if its section is given.

    position: offset in the file of the first byte fed. first: number of the first packet.
    bytes_at: where the packets of the last PacketBlock begin in their blocks.
    """

    def __init__(
        self, section: Section | None = None, *, position: int = 0, first: int = 1
    ) -> None:
        self.problems: list[CaptureError] = []
        self.key_logs: list[bytes] = []
        self.section = section or Section("<")
        self.bytes_at = 0
        self._input = InputBuffer(position)
        self._begin = self._number = first
        self._damage: int | None = None
        self._searching: tuple[str, Search] | None = None
        self._unknown: set[int] = set()
        self._others = 0  # blocks of types that are not read
        self._first_other: tuple[int, int] | None = None  # type and offset of the first of them
        self._is_whole = section is None

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Handle the next bytes of the file."""
        data = self._input.add(chunk)
        if data is not None:
            yield from self._blocks(data, ended=False)

    def give_back(self) -> int:
        """Do without an incomplete packet; returns how many bytes must be fed again."""
        return self._input.give_back() if self._damage is None else 0

    def finish(self) -> Iterator[PacketBlock]:
        """Handle the end of the file."""
        if self._damage is not None:
            yield from self._blocks(self._input.peek(), ended=True)
        if left := len(self._input):
            self.problems.append(
                TruncatedCapture(f"the file ends {left} bytes into a block", self._input.position)
            )
        if self._first_other is not None and self._is_whole and self._number == self._begin:
            self.problems.append(_without_packets(self._others, *self._first_other))

    def _blocks(self, data: bytes, *, ended: bool) -> Iterator[PacketBlock]:
        offset = 0
        while True:
            if self._damage is not None:
                resumed = self._search(data, offset, ended=ended)
                if resumed is None:
                    return
                offset = resumed
            offset, kind = self._step_over(data, offset)
            if kind == INCOMPLETE:
                self._input.consume(offset, self._needed(data, offset))
                return
            if kind == WRONG:
                self._damage = self._input.position + offset
                offset += 4
                continue
            offsets = self._run(data, offset, kind)
            yield self._columns(data, kind, offsets)
            last = int(offsets[-1])
            offset = last + self._block_at(data, last)[1]

    def _needed(self, data: bytes, position: int) -> int:
        """Return the length of the block at an offset, as far as known."""
        if position + LEAST_BLOCK > len(data):
            return LEAST_BLOCK
        length: int = struct.unpack_from(self.section.order + "I", data, position + 4)[0]
        return length

    def _search(self, data: bytes, start: int, *, ended: bool) -> int | None:
        """Find the next block behind damage; None if more bytes are needed, or the file ended."""
        if not ended and len(data) - start < SEARCH_BYTES:
            self._input.consume(start, SEARCH_BYTES)
            return None
        order = self.section.order
        before = self._searching
        if before is None or before[0] != order or before[1].data is not data:
            before = self._searching = order, block_search(data, order)
        is_found, position = before[1].find_behind_damage(start, SEARCH_BYTES, ended=ended)
        if not is_found:
            self._input.consume(position, SEARCH_BYTES)
        if is_found or ended:
            self._report(self._input.position + position if is_found else self._input.position)
        return position if is_found else None

    def _report(self, end: int) -> None:
        assert self._damage is not None
        self.problems.append(
            CorruptCapture(f"{end - self._damage} bytes are not pcapng blocks", self._damage)
        )
        self._damage = None

    def _step_over(self, data: bytes, position: int) -> tuple[int, int]:
        """Skip blocks without packets; store interface descriptions.

        Returns the offset and type of a packet block, or the offset of an INCOMPLETE or WRONG one.
        """
        while True:
            kind, length = self._block_at(data, position)
            if kind in LAYOUTS or kind < 0:
                return position, kind
            if kind == INTERFACE:
                body = data[position + 8 : position + length - 4]
                self.section.interfaces.append(read_interface(body, self.section.order))
            elif kind == SECRETS:
                self._secrets(data[position + 8 : position + length - 4])
            elif kind not in WITHOUT_PACKETS:
                self._others += 1
                if self._first_other is None:
                    self._first_other = kind, self._input.position + position
            position += length

    def _block_at(self, data: bytes, position: int) -> tuple[int, int]:
        """Return the type and length of the block at an offset; a section header is applied."""
        if position + LEAST_BLOCK > len(data):
            return INCOMPLETE, 0
        if data[position : position + 4] == PCAPNG:
            order = _MARKS.get(data[position + 8 : position + 12])
            if order is None:
                return WRONG, 0
            self.section = Section(order)
        kind, length = struct.unpack_from(self.section.order + "II", data, position)
        if not LEAST.get(kind, LEAST_BLOCK) <= length <= MAX_BLOCK or length & 3:
            return WRONG, 0
        end = position + length
        if end > len(data):
            return INCOMPLETE, 0
        if data[end - 4 : end] != data[position + 4 : position + 8]:
            return WRONG, 0
        return kind, length

    def _secrets(self, body: bytes) -> None:
        """Store the content of a Decryption Secrets Block if it is a TLS key log."""
        kind, length = struct.unpack_from(self.section.order + "II", body)
        if kind == TLS_KEY_LOG:
            self.key_logs.append(body[SECRETS_HEADER : SECRETS_HEADER + length])

    def _run(self, data: bytes, start: int, kind: int) -> Ints:
        """Find the consecutive blocks of one type from `start` on.

        Only their offsets are found one by one; the blocks are validated by columns.
        """
        big = self.section.order == ">"
        offsets, blocks_end = blocks(data, start, kind, LEAST[kind], big, MAX_PACKETS)
        starts = np.frombuffer(offsets, "<i8")
        ends = np.append(starts[1:], blocks_end)
        sizes = ends - starts
        good = _leading((sizes <= MAX_BLOCK) & (sizes & 3 == 0) & (ends <= len(data)))
        lengths = take_rows(data, starts[:good] + 4, _WORD), take_rows(data, ends[:good] - 4, _WORD)
        complete: Ints = starts[: _leading(lengths[0] == lengths[1])]
        return complete

    def _columns(self, data: bytes, kind: int, offsets: Ints) -> PacketBlock:
        layout = LAYOUTS[kind]
        self.bytes_at = layout.bytes_at
        rows = take_rows(data, offsets, layout.dtype(self.section.order))
        room = rows["length"].astype(np.int64) - layout.bytes_at - 4
        original = rows["original"].astype(np.int64)
        if kind == SIMPLE_PACKET:
            interface = np.zeros(len(rows), np.int64)
            ts = np.full(len(rows), NO_TIME, np.int64)
            snaplen = self.section.interfaces[0].snaplen if self.section.interfaces else 0
            captured = np.minimum(original, snaplen or MAX_BLOCK)
        else:
            interface = rows["interface"].astype(np.int64)
            units = (rows["high"].astype(np.uint64) << np.uint64(32)) | rows["low"]
            ts = self._times(units.view(np.int64), interface)
            captured = rows["captured"].astype(np.int64)
        block = PacketBlock(
            data=data,
            position=self._input.position,
            first=self._number,
            ts=ts,
            start=offsets + layout.bytes_at,
            captured=np.minimum(captured, room),
            original=np.maximum(original, np.minimum(captured, room)),
            link=self._links(interface, offsets),
        )
        self._number += len(block)
        return block

    def _times(self, units: Ints, interface: Ints) -> Ints:
        ts = np.empty(len(units), np.int64)
        for index in kinds(interface):
            described = self._described(index)
            rows = interface == index
            ts[rows] = (described or Interface(0, 0)).nanoseconds(units[rows])
        return ts

    def _links(self, interface: Ints, offsets: Ints) -> Ints:
        link = np.full(len(interface), NO_INTERFACE, np.int64)
        for index in kinds(interface):
            described = self._described(index)
            rows = interface == index
            if described is not None:
                link[rows] = described.link
            elif index not in self._unknown:
                self._unknown.add(index)
                where = self._input.position + int(offsets[rows.argmax()])
                self.problems.append(
                    UnsupportedLinkType(f"interface {index} has no description block", where)
                )
        return link

    def _described(self, index: int) -> Interface | None:
        interfaces = self.section.interfaces
        return interfaces[index] if index < len(interfaces) else None


def _without_packets(blocks: int, kind: int, position: int) -> UnsupportedBlockType:
    """Make the problem of a file that has other blocks, the first of that type, and no packets."""
    sysdig = ", which is of sysdig: system calls" if kind in SYSDIG else ""
    what = f"{counted(blocks, 'block')} of types that are not read, the first {kind:#x}{sysdig}"
    return UnsupportedBlockType(f"no packets, and {what}", position)


_MARKS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_WORD: Final = np.dtype([("word", "u4")])


def _leading(flags: npt.NDArray[np.bool_]) -> int:
    """Count the leading true values."""
    return len(flags) if flags.all() else int(flags.argmin())
