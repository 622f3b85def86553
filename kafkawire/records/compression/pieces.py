"""Decompresses the records of batches in pieces: streams of several frames, and corrupt ones.

The output before a fault is yielded before the fault is raised. Output is limited by what
actually comes out, never by a declared size, and time is linear in the bytes in and out.

    gzip    parts of doubling size       lz4     blocks
    snappy  blocks                       zstd    blocks
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from ...errors import CorruptBatch, LimitExceeded, WireError
from ..limits import DEFAULT_RECORD_LIMITS
from . import gzip, lz4, snappy, zstd
from .codecs import Compression
from .packages import package_of

FIRST_BUFFER: Final = 32_768
GROWTH: Final = 8

LARGEST_PART: Final = 1 << 22
"""Bytes that a part of a gzip member becomes at most."""

MAX_FRAMES: Final = DEFAULT_RECORD_LIMITS.max_frames


def readable_part(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> bytes:
    """Decompress corrupt `data` up to its fault.

    Returns all gzip output before the fault, and whole blocks of lz4, zstd and Java's snappy
    framing; nothing of a corrupt raw block of snappy.
    """
    parts: list[bytes] = []
    try:
        for part in PIECES[codec](data, magic, limit, max_frames):
            parts.append(part)  # not `extend`: output before an error is kept
    except WireError:
        pass  # already reported by `decompress`
    return b"".join(parts)


# -- limits


def bomb(codec: str, size: int, limit: int) -> LimitExceeded:
    """Make the error for `size` bytes that decompress to more than `limit`."""
    ratio = limit / max(size, 1)
    return LimitExceeded(
        f"{codec}: {size} bytes become more than the {limit} allowed (over {ratio:.1f}:1)"
    )


def too_many(codec: str, max_frames: int) -> LimitExceeded:
    """Make the error for a stream of more than `max_frames` members, frames or blocks."""
    return LimitExceeded(f"{codec}: more than the {max_frames} {FRAME_NAMES[codec]} allowed")


FRAME_NAMES: Final = {"gzip": "members", "snappy": "blocks", "lz4": "frames", "zstd": "frames"}


def capacity(size: int, limit: int) -> int:
    """Return the size of the first buffer for the output of `size` bytes."""
    return min(limit, max(FIRST_BUFFER, GROWTH * size))


# -- by codec


def gzip_pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read the members of a gzip stream in pieces."""
    left = limit
    at = members = 0
    while at < len(data) or not members:
        members += 1
        if members > max_frames:
            raise too_many("gzip", max_frames)
        member = gzip.Member()
        size = gzip.FIRST_PIECE
        is_full = False
        while not member.ended:
            piece = b""
            if member.hungry and not is_full:  # what fills a part may have more output
                piece = data[at : at + size]
                if not piece:
                    raise CorruptBatch("gzip: the stream ends inside a member")
                at += len(piece)
                size = min(2 * size, gzip.LARGEST_PIECE)
            part = member.decompress(piece, min(left + 1, LARGEST_PART))
            is_full = len(part) == LARGEST_PART
            left -= len(part)
            if left < 0:
                raise bomb("gzip", len(data), limit)
            yield part
            if member.fault is not None:
                raise CorruptBatch(f"gzip: {member.fault}")
        at -= member.unread


def snappy_pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read the blocks of a snappy stream."""
    left = limit
    for count, block in enumerate(snappy.blocks(data)):
        if count == max_frames:
            raise too_many("snappy", max_frames)
        size = snappy.block_size(block)
        if size > left:
            raise bomb("snappy", len(data), limit)
        left -= size
        yield unsnappy_block(block)


def unsnappy_block(block: bytes) -> bytes:
    """Decompress one raw block whose declared size was checked."""
    package = package_of("snappy")
    try:
        return bytes(package.snappy.decompress_raw(block))
    except package.DecompressionError as error:
        raise CorruptBatch(f"snappy: {error}") from None


def lz4_pieces(data: bytes, magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
    """Read lz4 frames block by block."""
    frames = lz4.with_standard_checksum(data) if magic == 0 else data
    package = package_of("lz4")
    left = limit
    at = count = 0
    while at < len(frames) or not count:
        count += 1
        if count > max_frames:
            raise too_many("lz4", max_frames)
        context = package.create_decompression_context()
        ended = False
        for end in lz4.block_ends(frames, at):
            part, ended = lz4_block(context, frames[at:end], left)
            left -= len(part)
            if left < 0:
                raise bomb("lz4", len(data), limit)
            yield part
            at = end
        if not ended:
            raise CorruptBatch("lz4: the stream ends inside a frame")


def lz4_block(context: Any, block: bytes, limit: int) -> tuple[bytes, bool]:
    """Decompress a block in a frame's context; return (output, whether the frame ended).

    Output beyond `limit` is not read.
    """
    package = package_of("lz4")
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


def zstd_pieces(data: bytes, _magic: int, limit: int, max_frames: int) -> Iterator[bytes]:
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
            raise too_many("zstd", max_frames)
        frame = package.ZstdDecompressor()
        for end in zstd.block_ends(data, at):
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


def whole(data: bytes, _magic: int, _limit: int, _max_frames: int) -> Iterator[bytes]:
    """Yield the data: no codec."""
    yield data


PIECES: Final[tuple[Callable[[bytes, int, int, int], Iterator[bytes]], ...]] = (
    whole,
    gzip_pieces,
    snappy_pieces,
    lz4_pieces,
    zstd_pieces,
)
"""By codec."""
