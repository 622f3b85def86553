"""pcapng: sections of blocks; interfaces are described before packets refer to them.

Law: a block that is not understood is stepped over by its length; a block whose two lengths differ
is damage, skipped up to where blocks begin again, and reported.

    block      type | length | body ... | length            length counts the whole block, a
    multiple of 4 section    0x0A0D0D0A: byte order mark 0x1A2B3C4D; forgets all interfaces
    interface  1: link type, snaplen, options (if_tsresol, if_tsoffset) packets    6 enhanced, 3
    simple (no time), 2 the old packet block

Source: the IETF draft "PCAP Next Generation (pcapng) Capture File Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from ..errors import CaptureError, CorruptCapture, TruncatedCapture, UnsupportedLinkType
from .blocks import NO_TIME, Ints, PacketBlock, take_rows
from .interfaces import Interface, read_interface
from .resync import windows, words_at

SECTION: Final = 0x0A0D0D0A
MAGIC: Final = b"\x0a\x0d\x0d\x0a"
INTERFACE: Final = 1
OLD_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6

MAX_BLOCK: Final = 1 << 24
"""Longest block that is believed."""

SEARCH_BYTES: Final = 1 << 20
"""How much is collected before searching for the next block behind damage."""

LEAST_BLOCK: Final = 12
NO_INTERFACE: Final = -1


class Layout(NamedTuple):
    """How a kind of packet block begins: its fields, and where the packet's bytes start."""

    fields: list[tuple[str, str]]
    bytes_at: int

    def dtype(self, order: str) -> np.dtype[np.void]:
        return np.dtype([(name, order + kind) for name, kind in self.fields])


_HEAD: Final = [("type", "u4"), ("length", "u4")]
_TIMED: Final = [("high", "u4"), ("low", "u4"), ("captured", "u4"), ("original", "u4")]

LAYOUTS: Final = {
    ENHANCED_PACKET: Layout([*_HEAD, ("interface", "u4"), *_TIMED], 28),
    OLD_PACKET: Layout([*_HEAD, ("interface", "u2"), ("drops", "u2"), *_TIMED], 28),
    SIMPLE_PACKET: Layout([*_HEAD, ("original", "u4")], 12),
}


def is_pcapng(head: bytes) -> bool:
    """Whether a file that begins with these 4 bytes is a pcapng."""
    return head[:4] == MAGIC


@dataclass(slots=True)
class Section:
    """A section as far as it was read; `order` is struct's sign of its byte order."""

    order: str
    interfaces: list[Interface] = field(default_factory=list)


class PcapngDecoder:
    """Reads a pcapng from its first byte."""

    def __init__(self) -> None:
        self.problems: list[CaptureError] = []
        self._section = Section("<")
        self._position = 0
        self._number = 1
        self._held = b""
        self._damage: int | None = None
        self._unknown: set[int] = set()

    def feed(self, chunk: bytes) -> Iterator[PacketBlock]:
        """Take the next bytes of the file."""
        yield from self._blocks(self._held + chunk if self._held else chunk, ended=False)

    def finish(self) -> Iterator[PacketBlock]:
        """Take note that the file ends here."""
        if self._damage is not None:
            yield from self._blocks(self._held, ended=True)
        if self._held:
            left = len(self._held)
            self.problems.append(
                TruncatedCapture(f"the file ends {left} bytes into a block", self._position)
            )

    def _blocks(self, data: bytes, *, ended: bool) -> Iterator[PacketBlock]:
        at = 0
        while True:
            if self._damage is not None:
                found = self._search(data, at, ended=ended)
                if found is None:
                    return
                at = found
            kind, places, at, wrong = self._walk(data, at)
            if places:
                block = self._columns(data, kind, np.array(places, np.int64))
                yield from block.pieces()
            elif not wrong:
                self._keep(data, at)
                return
            if wrong:
                self._damage = self._position + at
                at += 4

    def _keep(self, data: bytes, start: int) -> None:
        self._held = data[start:]
        self._position += start

    def _search(self, data: bytes, start: int, *, ended: bool) -> int | None:
        """Find where blocks begin again; None where more bytes are needed, or none come."""
        if not ended and len(data) - start < SEARCH_BYTES:
            self._keep(data, start)
            return None
        found = find_block(data, start, self._section.order)
        if found is not None:
            self._report(self._position + found)
            return found
        self._keep(data, len(data) if ended else len(data) - SEARCH_BYTES // 2)
        if ended:
            self._report(self._position)
        return None

    def _report(self, end: int) -> None:
        assert self._damage is not None
        self.problems.append(
            CorruptCapture(f"{end - self._damage} bytes are no blocks", self._damage)
        )
        self._damage = None

    def _walk(self, data: bytes, at: int) -> tuple[int, list[int], int, bool]:
        """Step over whole blocks until packets of another kind come, a section, damage, or the end
        of the data.

        Returns the kind of the packets found (0: none), the offsets of their blocks, where the walk
        stopped, and whether it stopped at damage.
        """
        kind = 0
        places: list[int] = []
        size = len(data)
        head = struct.Struct(self._section.order + "II").unpack_from
        while at + LEAST_BLOCK <= size:
            block_type, length = head(data, at)
            if block_type == SECTION:
                if places:
                    return kind, places, at, False
                if data[at + 8 : at + 12] not in _MARKS:
                    return kind, places, at, True
                self._section = Section(_MARKS[data[at + 8 : at + 12]])
                head = struct.Struct(self._section.order + "II").unpack_from
                length = head(data, at)[1]
            if length < LEAST_BLOCK or length > MAX_BLOCK or length & 3:
                return kind, places, at, True
            if at + length > size:
                break
            if data[at + length - 4 : at + length] != data[at + 4 : at + 8]:
                return kind, places, at, True
            if block_type in LAYOUTS:
                if length < LAYOUTS[block_type].bytes_at + 4:
                    return kind, places, at, True
                if kind not in (0, block_type):
                    return kind, places, at, False
                kind = block_type
                places.append(at)
            elif block_type == INTERFACE:
                if length < 20:
                    return kind, places, at, True
                body = data[at + 8 : at + length - 4]
                self._section.interfaces.append(read_interface(body, self._section.order))
            at += length
        return kind, places, at, False

    def _columns(self, data: bytes, kind: int, places: Ints) -> PacketBlock:
        layout = LAYOUTS[kind]
        rows = take_rows(data, places, layout.dtype(self._section.order))
        room = rows["length"].astype(np.int64) - layout.bytes_at - 4
        original = rows["original"].astype(np.int64)
        if kind == SIMPLE_PACKET:
            interface = np.zeros(len(rows), np.int64)
            ts = np.full(len(rows), NO_TIME, np.int64)
            snaplen = self._section.interfaces[0].snaplen if self._section.interfaces else 0
            captured = np.minimum(original, snaplen or MAX_BLOCK)
        else:
            interface = rows["interface"].astype(np.int64)
            units = (rows["high"].astype(np.uint64) << np.uint64(32)) | rows["low"]
            ts = self._times(units.view(np.int64), interface)
            captured = rows["captured"].astype(np.int64)
        block = PacketBlock(
            data=data,
            position=self._position,
            first=self._number,
            ts=ts,
            start=places + layout.bytes_at,
            captured=np.minimum(captured, room),
            original=np.maximum(original, np.minimum(captured, room)),
            link=self._links(interface, places),
        )
        self._number += len(block)
        return block

    def _times(self, units: Ints, interface: Ints) -> Ints:
        ts = np.empty(len(units), np.int64)
        for index in np.unique(interface).tolist():
            described = self._described(index)
            rows = interface == index
            ts[rows] = (described or Interface(0, 0)).nanoseconds(units[rows])
        return ts

    def _links(self, interface: Ints, places: Ints) -> Ints:
        link = np.full(len(interface), NO_INTERFACE, np.int64)
        for index in np.unique(interface).tolist():
            described = self._described(index)
            rows = interface == index
            if described is not None:
                link[rows] = described.link
            elif index not in self._unknown:
                self._unknown.add(index)
                where = self._position + int(places[rows.argmax()])
                self.problems.append(
                    UnsupportedLinkType(f"interface {index} is described nowhere", where)
                )
        return link

    def _described(self, index: int) -> Interface | None:
        known = self._section.interfaces
        return known[index] if index < len(known) else None


_MARKS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SOUGHT: Final = np.array([SECTION, INTERFACE, *LAYOUTS])


def find_block(data: bytes, start: int, order: str) -> int | None:
    """Find the first offset from `start` on where a section, interface or packet block lies whole,
    its lengths equal.
    """
    for window in windows(start, len(data)):
        found = []
        for phase in range(4):
            kinds, lengths = words_at(data, window, phase, 2, order)
            ok = np.isin(kinds, _SOUGHT) & (lengths >= LEAST_BLOCK) & (lengths <= MAX_BLOCK)
            found.append(np.flatnonzero(ok & (lengths & 3 == 0)) * 4 + phase + window.start)
        for at in np.sort(np.concatenate(found)).tolist():
            length = data[at + 4 : at + 8]
            end = at + struct.unpack(order + "I", length)[0]
            if end <= len(data) and data[end - 4 : end] == length:
                return int(at)
    return None
