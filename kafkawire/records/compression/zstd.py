"""Compresses and decompresses zstd frames (RFC 8878), in whole and block by block.

28 b5 2f fd │ descriptor │ [window: 1] │ [dictionary: 1, 2, 4] │ [content size: 1, 2, 4, 8] │
(header: uint24 LE, bit 0 last, bits 1-2 kind, then size; block)* │ [checksum: 4]
5x 2a 4d 18 │ size: uint32 LE │ so many bytes that are skipped
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

from ...errors import CorruptBatch
from ...magic_numbers import is_skippable
from .bounds import bomb, capacity, too_many
from .packages import Package, give_back, taken

PACKAGE: Final[Package] = Package("zstd", "zstandard")

ZSTD_LEVEL: Final = 3
"""zstd's own default, and Kafka's."""

DEAREST_LEVEL: Final = 9
"""The highest level whose contexts are reused: those above take tens of megabytes."""

SINGLE_SEGMENT: Final = 0x20
CHECKSUM: Final = 0x04
DICTIONARY_BYTES: Final = (0, 1, 2, 4)
CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
RUN_BLOCK: Final = 1
"""The block type of one byte, repeated."""


def block_ends(data: bytes, start: int) -> Iterator[int]:
    """Yield the end of the header, of each block and of the checksum of the frame at `start`.

    The last is the end of the frame. Nothing is checked: a truncated or malformed frame ends with
    the data at the latest.
    """
    end = len(data)
    if is_skippable(data[start : start + 4]):
        yield min(start + 8 + int.from_bytes(data[start + 4 : start + 8], "little"), end)
        return
    descriptor = data[start + 4] if start + 4 < end else 0
    single = descriptor & SINGLE_SEGMENT != 0
    pos = start + 5 + (0 if single else 1) + DICTIONARY_BYTES[descriptor & 3]
    pos += CONTENT_SIZE_BYTES[descriptor >> 6] or single
    is_last = False
    while not is_last and pos < end:
        yield pos
        header = int.from_bytes(data[pos : pos + 3], "little")
        is_last = header & 1 != 0
        pos += 3 + (1 if header >> 1 & 3 == RUN_BLOCK else header >> 3)
    if pos < end and descriptor & CHECKSUM:
        yield pos
        pos += 4
    yield min(pos, end)


# -- in whole and in part


def compress(data: bytes, _magic: int, level: int | None) -> bytes:
    """Write one zstd frame."""
    chosen = ZSTD_LEVEL if level is None else level
    make = partial(PACKAGE.module.ZstdCompressor, level=chosen)
    writer = taken(f"zstd {chosen}", make)
    written: bytes = writer.compress(data)
    if chosen <= DEAREST_LEVEL:
        give_back(f"zstd {chosen}", writer)
    return written


def decompress(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read zstd frames."""
    read = single_frame(data, capacity(len(data), limit))
    return b"".join(pieces(data, magic, limit, max_frames)) if read is None else read


def single_frame(data: bytes, limit: int) -> bytes | None:
    """Read one frame of 1 to `limit` bytes; None of others.

    The package ignores bytes after an empty frame.
    """
    package = PACKAGE.module
    reader = taken("zstd", package.ZstdDecompressor)
    try:
        size = package.frame_content_size(data)  # -1 if the frame does not declare it
        if size == 0 or size > limit:
            return None
        read: bytes = reader.decompress(data, max_output_size=limit, allow_extra_data=False)
        return read
    except package.ZstdError:
        return None
    finally:
        give_back("zstd", reader)


def pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read zstd frames block by block."""
    if sys.version_info >= (3, 14):
        from compression import zstd as package
    else:
        from backports import zstd as package

    left = limit
    at = count = 0
    while at < len(data) or not count:
        count += 1
        if count > max_frames:
            raise too_many("zstd", "frames", max_frames)
        frame = package.ZstdDecompressor()
        for end in block_ends(data, at):
            if frame.eof:
                raise CorruptBatch(f"zstd: {end - at} bytes after the end of a frame")
            try:
                part = frame.decompress(data[at:end], left + 1)
            except package.ZstdError as error:
                raise CorruptBatch(f"zstd: {error}") from None
            left -= len(part)
            if left < 0:
                raise bomb("zstd", len(data), limit)
            yield part
            at = end
        if not frame.eof:
            raise CorruptBatch("zstd: the stream ends inside a frame")
