"""Writes lz4 frames as Kafka does, and reads them, in whole and block by block.

A frame of magic 0 is read with either checksum and written with Kafka's; other frames are not
changed.

    magic: 04 22 4d 18 │ FLG │ BD │ [content size: 8] │ header checksum │
    (size: uint32 LE, bit 31 = stored; block)* │ 0: uint32

The header checksum is bits 8-15 of xxHash-32 from FLG to before it. Kafka's writer of magic 0
included the frame magic (KAFKA-3160); its readers of magic 0 expect that, and lz4 libraries reject
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final

from ...errors import CorruptBatch
from ...magic_numbers import LZ4, is_skippable
from .bounds import bomb, capacity, too_many
from .packages import Package, give_back, taken

PACKAGE: Final[Package] = Package("lz4", "lz4", "lz4.frame")
BLOCKS: Final[Package] = Package("lz4", "lz4", "lz4.block")

WORD: Final = Struct("<I")

BLOCK_CHECKSUM: Final = 0x10
CONTENT_SIZE: Final = 0x08
CONTENT_CHECKSUM: Final = 0x04
DICTIONARY: Final = 0x01

DESCRIPTOR: Final = b"\x60\x40"
"""Version 1, independent blocks (the only ones that Kafka's Java reader accepts) of 64 KiB, no
checksums.
"""
BLOCK_BYTES: Final = 65_536
STORED: Final = 0x8000_0000
END: Final = bytes(4)

PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = (
    0x9E3779B1,
    0x85EBCA77,
    0xC2B2AE3D,
    0x27D4EB2F,
    0x165667B1,
)
MASK: Final = 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """Compute xxHash-32 with seed 0 of fewer than 16 bytes: a frame header is shorter."""
    value = PRIME_5 + len(data)
    words = len(data) // 4 * 4
    for pos in range(0, words, 4):
        value = rotate(value + WORD.unpack_from(data, pos)[0] * PRIME_3, 17) * PRIME_4
    for byte in data[words:]:
        value = rotate(value + byte * PRIME_5, 11) * PRIME_1
    value &= MASK
    value = (value ^ value >> 15) * PRIME_2 & MASK
    value = (value ^ value >> 13) * PRIME_3 & MASK
    return value ^ value >> 16


def rotate(value: int, count: int) -> int:
    """Rotate 32 bits to the left."""
    value &= MASK
    return (value << count | value >> (32 - count)) & MASK


def checksum(header: bytes) -> int:
    """Compute a header checksum over `header`."""
    return xxh32(header) >> 8 & 0xFF


def checksum_place(data: bytes) -> int:
    """Return the position of the first frame's header checksum."""
    if not data.startswith(LZ4) or len(data) < 7:
        raise CorruptBatch("lz4: no frame header")
    flags = data[4]
    if flags & DICTIONARY:
        raise CorruptBatch("lz4: the frame needs a dictionary")
    end = 6 + (8 if flags & CONTENT_SIZE else 0)
    if end >= len(data):
        raise CorruptBatch("lz4: the data ends inside a frame header")
    return end


def with_standard_checksum(data: bytes) -> bytes:
    """Return data of magic 0 with the header checksum of its first frame as libraries expect it."""
    place = checksum_place(data)
    standard = checksum(data[4:place])
    if data[place] not in (standard, checksum(data[:place])):
        raise CorruptBatch("lz4: wrong header checksum")
    return data[:place] + bytes([standard]) + data[place + 1 :]


def block_ends(data: bytes, start: int) -> Iterator[int]:
    """Yield the end of the header, of each block, of the end mark and of the checksum of a frame.

    The last is the end of the frame at `start`. Nothing is checked: a truncated or malformed frame
    ends with the data at the latest.
    """
    end = len(data)
    if is_skippable(data[start : start + 4]):
        yield min(start + 8 + int.from_bytes(data[start + 4 : start + 8], "little"), end)
        return
    flags = data[start + 4] if start + 4 < end else 0
    pos = start + 7 + (8 if flags & CONTENT_SIZE else 0) + (4 if flags & DICTIONARY else 0)
    word = 1
    while word and pos < end:
        yield pos
        word = int.from_bytes(data[pos : pos + 4], "little")
        pos += 4
        if word:
            pos += (word & ~STORED) + (4 if flags & BLOCK_CHECKSUM else 0)
    if pos < end and flags & CONTENT_CHECKSUM:
        yield pos
        pos += 4
    yield min(pos, end)


def cut(data: bytes) -> Iterator[bytes]:
    """Cut `data` into blocks."""
    for start in range(0, len(data), BLOCK_BYTES):
        yield data[start : start + BLOCK_BYTES]


def frame(data: bytes, magic: int, compress_block: Callable[[bytes], bytes]) -> bytes:
    """Put `data` into one frame; a block that would not shrink is stored."""
    header = LZ4 + DESCRIPTOR
    out = [header, bytes([checksum(header if magic == 0 else DESCRIPTOR)])]
    for part in cut(data):
        block = compress_block(part)
        if len(block) < len(part):
            out += [WORD.pack(len(block)), block]
        else:
            out += [WORD.pack(len(part) | STORED), part]
    out.append(END)
    return b"".join(out)


# -- in whole and in part


def compress(data: bytes, magic: int, level: int | None) -> bytes:
    """Write one lz4 frame; a level chooses the slow, dense mode."""
    compress_block = BLOCKS.module.compress
    dense = {} if level is None else {"mode": "high_compression", "compression": level}
    return frame(data, magic, lambda part: compress_block(part, store_size=False, **dense))


def decompress(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read lz4 frames; in magic 0 the header checksum is corrected first."""
    frames = with_standard_checksum(data) if magic == 0 else data
    package = PACKAGE.module
    context = taken("lz4", package.create_decompression_context)
    rest = memoryview(frames)
    parts: list[bytes] = []
    left, ended = limit, False
    while not ended:
        # one more than allowed, because the end of a frame comes with the byte after the last
        most = capacity(len(rest), left) + 1
        try:
            part, read, ended = package.decompress_chunk(context, rest, max_length=most)
        except RuntimeError as error:
            raise CorruptBatch(f"lz4: {error}") from None
        parts.append(part)
        rest = rest[read:]
        left -= len(part)
        if left < 0:
            raise bomb("lz4", len(data), limit)
        if not ended and len(part) < most:
            raise CorruptBatch("lz4: the stream ends inside a frame")
    give_back("lz4", context)  # not after an error, because the context keeps it
    if rest:
        return b"".join(pieces(data, magic, limit, max_frames))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def pieces(data: bytes, magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read lz4 frames block by block."""
    frames = with_standard_checksum(data) if magic == 0 else data
    package = PACKAGE.module
    left = limit
    at = count = 0
    while at < len(frames) or not count:
        count += 1
        if count > max_frames:
            raise too_many("lz4", "frames", max_frames)
        context = package.create_decompression_context()
        ended = False
        for end in block_ends(frames, at):
            part, ended = decompressed_block(context, frames[at:end], left)
            left -= len(part)
            if left < 0:
                raise bomb("lz4", len(data), limit)
            yield part
            at = end
        if not ended:
            raise CorruptBatch("lz4: the stream ends inside a frame")


def decompressed_block(context: Any, block: bytes, limit: int) -> tuple[bytes, bool]:
    """Decompress a block in a frame's context; return (output, whether the frame ended).

    Output beyond `limit` is not read.
    """
    package = PACKAGE.module
    parts: list[bytes] = []
    size = 0
    while True:
        most = capacity(len(block), limit - size) + 1
        try:
            part, read, ended = package.decompress_chunk(context, block, max_length=most)
        except RuntimeError as error:
            raise CorruptBatch(f"lz4: {error}") from None
        parts.append(part)
        size += len(part)
        block = block[read:]
        if ended and block:
            raise CorruptBatch(f"lz4: {len(block)} bytes after the end of a frame")
        if ended or size > limit or (not block and len(part) < most):
            return parts[0] if len(parts) == 1 else b"".join(parts), ended
