"""Reads and writes the snappy formats of record batches: Java's framing, or one raw block.

A block's declared size is accepted only if its bytes can decompress to it.

    (82 'SNAPPY' 00 │ version: int32 │ compatible version: int32 │ (size: int32, raw block)*)*

Streams may follow each other; the first byte of a header is no size's, as that is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ...errors import CorruptBatch
from ...magic_numbers import SNAPPY_JAVA
from .bounds import bomb, too_many
from .packages import Package

PACKAGE: Final[Package] = Package("snappy", "cramjam")

JAVA_HEADER: Final = SNAPPY_JAVA + b"\x00\x00\x00\x01\x00\x00\x00\x01"
SIZE: Final = Struct(">i")

BLOCK_BYTES: Final = 32_768
"""Bytes per block of Java's writer."""

MOST_PER_BYTE: Final = 22
"""The highest ratio of a raw block: a copy of up to 64 bytes takes three."""


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield the raw blocks of either form."""
    if not data.startswith(SNAPPY_JAVA):
        yield data
        return
    pos = 0
    while pos < len(data):
        if data.startswith(SNAPPY_JAVA, pos):
            pos += len(JAVA_HEADER)
            if pos > len(data):
                raise CorruptBatch("snappy: the stream ends inside its header")
            continue
        if pos + SIZE.size > len(data):
            raise CorruptBatch("snappy: the stream ends inside a block's size")
        (size,) = SIZE.unpack_from(data, pos)
        pos += SIZE.size
        if size < 0 or size > len(data) - pos:
            raise CorruptBatch(f"snappy: a block of {size} bytes, {len(data) - pos} left")
        yield data[pos : pos + size]
        pos += size


def block_size(block: bytes) -> int:
    """Read the declared size of a raw block; CorruptBatch if its bytes cannot decompress to it."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    else:
        raise CorruptBatch("snappy: no block size")
    if size > len(block) * MOST_PER_BYTE:
        raise CorruptBatch(f"snappy: {len(block)} bytes cannot become {size}")
    return size


def cut(data: bytes) -> Iterator[memoryview]:
    """Split `data` into blocks as Java's writer does, without copying."""
    view = memoryview(data)
    for start in range(0, len(data), BLOCK_BYTES):
        yield view[start : start + BLOCK_BYTES]


def framed(raw_blocks: list[bytes]) -> bytes:
    """Write raw blocks in Java's framing."""
    return JAVA_HEADER + b"".join(SIZE.pack(len(block)) + block for block in raw_blocks)


# -- in whole and in part


def compress(data: bytes, _magic: int, _level: int | None) -> bytes:
    """Write Java's framing, which every Kafka client reads; snappy has no levels."""
    module = PACKAGE.module.snappy
    return framed([bytes(module.compress_raw(part)) for part in cut(data)])


def decompress(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read Java's framing, or one raw block."""
    parts = list(pieces(data, magic, limit, max_frames))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read the blocks of a snappy stream."""
    left = limit
    for count, block in enumerate(blocks(data)):
        if count == max_frames:
            raise too_many("snappy", "blocks", max_frames)
        size = block_size(block)
        if size > left:
            raise bomb("snappy", len(data), limit)
        left -= size
        yield decompressed_block(block)


def decompressed_block(block: bytes) -> bytes:
    """Decompress one raw block whose declared size was checked."""
    package = PACKAGE.module
    try:
        return bytes(package.snappy.decompress_raw(block))
    except package.DecompressionError as error:
        raise CorruptBatch(f"snappy: {error}") from None
