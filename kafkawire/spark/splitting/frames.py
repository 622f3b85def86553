"""Finds the members of a compressed file from their headers: BGZF, and zstd in frames.

Only a member whose header does not state its content size is decompressed, to measure it.
Marks are not trusted: the reader of a range compares its end with the next mark.

    BGZF    gzip members with an extra field BC: their own size - 1; the last 4 bytes: content size
    zstd    frame header (content size) | blocks, each after its size | checksum
    seekable zstd: a skippable frame at the end with the sizes of all frames

Sources: SAM/BAM specification section 4.1; RFC 8878; zstd's contrib/seekable_format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...capture.files.source import CHUNK, Unpacked
from ...magic_numbers import (
    BGZF,
    ZSTD,
    ZSTD_SEEK_TABLE,
    ZSTD_SEEKABLE,
    is_gzip,
    is_skippable,
)
from .sources import chunks
from .splits import Mark
from .stores import Reader

EMPTY_BGZF: Final = 28
"""Size of the empty member that ends a BGZF file."""

SEEK_FOOTER: Final = struct.Struct("<IBI")
MAX_SEEK_TABLE: Final = 1 << 28
_SEEK_CHECKSUMS: Final = 0x80
_SEEK_RESERVED: Final = 0x7C

MAX_FRAME: Final = 1 << 26
"""Maximum bytes of a frame that are stepped through: a file of one long frame has no marks, and all
of it would have to be fetched.
"""

_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_LAST_BLOCK: Final = 1
_RAW, _RLE, _COMPRESSED = range(3)


class Member(NamedTuple):
    """Size of a member or frame, and of its content."""

    packed: int
    size: int


class Window:
    """Reads a file sequentially, with read-ahead."""

    def __init__(self, reader: Reader, size: int) -> None:
        self.size = size
        self._reader = reader
        self._at = 0
        self._held = b""

    def take(self, offset: int, size: int) -> bytes:
        """Return bytes at an offset; fewer at the end of the file."""
        begin = offset - self._at
        if begin < 0 or begin + size > len(self._held):
            self._at, begin = offset, 0
            self._held = self._reader.read(offset, max(size, min(CHUNK, self.size - offset)))
        return self._held[begin : begin + size]

    def counted(self, offset: int, size: int) -> Member | None:
        """Decompress a member to measure its content; None if it is damaged."""
        unpacked = Unpacked(chunks(self._reader, offset, offset + size))
        content = sum(map(len, unpacked))
        return Member(size, content) if unpacked.problem is None else None


def marks(reader: Reader, size: int, spacing: int) -> list[Mark]:
    """Mark members at least `spacing` bytes of the file apart, from its start on.

    Members after the last readable one belong to the last mark. Returns one mark if a file cannot
    be split.
    """
    member_marks = [Mark(0, 0)]
    packed = position = 0
    for member in _members(reader, size):
        # No mark where only padding or a seek table follows: reading there would give nothing.
        if (
            member.size
            and packed - member_marks[-1].packed >= spacing
            and position > member_marks[-1].position
        ):
            member_marks.append(Mark(packed, position))
        packed += member.packed
        position += member.size
    return member_marks


def _members(reader: Reader, size: int) -> Iterator[Member]:
    window = Window(reader, size)
    if is_gzip(reader.read(0, 2)):
        return _bgzf(window)
    return _seek_table(reader, size) or _zstd(window)


# -- BGZF


def _bgzf(window: Window) -> Iterator[Member]:
    offset = 0
    while (size := _bgzf_size(window.take(offset, 18))) is not None:
        trailer = window.take(offset + size - 4, 4)
        if len(trailer) < 4:
            return
        content = int.from_bytes(trailer, "little")
        if not content and size != EMPTY_BGZF:
            return
        yield Member(size, content)
        offset += size


def _bgzf_size(head: bytes) -> int | None:
    """Return the size of a member from its header; None if it is not a BGZF member."""
    if len(head) < 18 or not head.startswith(BGZF) or head[12:16] != b"BC\x02\x00":
        return None
    size = int.from_bytes(head[16:18], "little") + 1
    return size if size >= EMPTY_BGZF - 2 else None


# -- zstd


def _zstd(window: Window) -> Iterator[Member]:
    offset = 0
    while (member := _zstd_frame(window, offset)) is not None:
        yield member
        offset += member.packed


def _zstd_frame(window: Window, start: int) -> Member | None:
    """Step over a frame; None if it is not a frame, truncated or corrupt."""
    head = window.take(start, 18)
    if len(head) >= 8 and is_skippable(head):
        end = start + 8 + int.from_bytes(head[4:8], "little")
        return Member(end - start, 0) if end <= window.size else None
    if len(head) < 6 or head[:4] != ZSTD:
        return None
    descriptor = head[4]
    single = descriptor >> 5 & 1
    offset = 5 + (not single) + _DICTIONARY_BYTES[descriptor & 3]
    width = (single, 2, 4, 8)[descriptor >> 6]
    blocks_end = _blocks_end(window, start + offset + width)
    if blocks_end is None:
        return None
    size = blocks_end + (4 if descriptor & 4 else 0) - start
    if start + size > window.size:
        return None
    if not width:
        return window.counted(start, size)
    content = int.from_bytes(head[offset : offset + width], "little") + (256 if width == 2 else 0)
    return Member(size, content)


def _blocks_end(window: Window, offset: int) -> int | None:
    limit = offset + MAX_FRAME
    while offset < limit and len(head := window.take(offset, 3)) == 3:
        word = int.from_bytes(head, "little")
        kind = word >> 1 & 3
        if kind > _COMPRESSED:
            return None
        offset += 3 + (1 if kind == _RLE else word >> 3)
        if word & _LAST_BLOCK:
            return offset
    return None


def _seek_table(reader: Reader, file_size: int) -> Iterator[Member] | None:
    """Read the sizes of all frames from the seek table; None if there is none."""
    footer = reader.read(max(0, file_size - SEEK_FOOTER.size), SEEK_FOOTER.size)
    if len(footer) < SEEK_FOOTER.size:
        return None
    count, flags, magic = SEEK_FOOTER.unpack(footer)
    if magic != ZSTD_SEEKABLE or flags & _SEEK_RESERVED:
        return None
    entry = struct.Struct("<III" if flags & _SEEK_CHECKSUMS else "<II")
    size = count * entry.size
    start = file_size - SEEK_FOOTER.size - size - 8
    if size > MAX_SEEK_TABLE or start < 0:
        return None
    table = reader.read(start, 8 + size)
    if table[:8] != struct.pack("<II", ZSTD_SEEK_TABLE, size + SEEK_FOOTER.size):
        return None
    members = [Member(*each[:2]) for each in entry.iter_unpack(table[8:])]
    return iter(members) if sum(member.packed for member in members) == start else None
