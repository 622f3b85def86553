"""Decompresses the records of batches, with limits on output, frames and time.

Law: memory is allocated for actual output, never for a declared size, and time is linear in the
bytes in and out. Each codec's package is imported on demand; a missing one raises
UnsupportedCompression with its name.

    gzip    RFC 1952, one or more members                    zlib
    snappy  Java's framing (xerial), or one raw block        cramjam
    lz4     frames; magic 0 has a header checksum of its own lz4
    zstd    RFC 8878 frames                                  zstandard

Batches of one member or frame, which nearly all are, are decompressed at once. Others, and corrupt
ones, are read again in pieces: the output before a fault is returned (`readable_part`).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..errors import CorruptBatch, LimitExceeded, WireError
from . import gzip, lz4, snappy, zstd
from .compression import Compression
from .limits import DEFAULT_RECORD_LIMITS, Budget
from .packages import give_back, package_of, taken

FIRST_BUFFER: Final = 32_768
GROWTH: Final = 8

MAX_FRAMES: Final = DEFAULT_RECORD_LIMITS.max_frames


def decompress(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> bytes:
    """Decompress `data` to at most `limit` bytes, from at most `max_frames` members or frames.

    Raises LimitExceeded with the ratio reached, CorruptBatch if the data is corrupt.
    """
    return DECOMPRESSORS[codec](data, magic, limit, max_frames)


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


def opened(
    codec: Compression, data: bytes, magic: int, budget: Budget, partial: bool
) -> tuple[bytes, WireError | None]:
    """Decompress `data` within a budget, up to a fault; return (output, fault).

    partial: whether to return the output before a fault. Beyond a limit there is none.
    """
    limit, max_frames = budget.batch_bytes(), budget.limits.max_frames
    fault: WireError | None = None
    try:
        read = decompress(codec, data, magic, limit, max_frames)
    except LimitExceeded:
        budget.spend_bytes(limit)  # this many bytes were decompressed to detect it
        raise
    except WireError as error:
        fault = error
        read = readable_part(codec, data, magic, limit, max_frames) if partial else b""
    budget.spend_bytes(len(read))
    return read, fault


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


# -- gzip


def gunzip(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read every member of a gzip stream."""
    member = zlib.decompressobj(gzip.GZIP_WINDOW)
    try:
        first = member.decompress(data, limit + 1)
    except zlib.error as error:
        raise CorruptBatch(f"gzip: {error}") from None
    if len(first) > limit:
        raise bomb("gzip", len(data), limit)
    if not member.eof:
        raise CorruptBatch("gzip: the stream ends inside a member")
    if not member.unused_data:
        return first
    return b"".join(gzip_pieces(data, magic, limit, max_frames))


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
        while not member.ended:
            piece = data[at : at + size]
            if not piece:
                raise CorruptBatch("gzip: the stream ends inside a member")
            part = member.decompress(piece, left + 1)
            left -= len(part)
            if left < 0:
                raise bomb("gzip", len(data), limit)
            yield part
            if member.fault is not None:
                raise CorruptBatch(f"gzip: {member.fault}")
            at += len(piece) - member.unread
            size = min(2 * size, gzip.LARGEST_PIECE)


# -- snappy


def unsnappy(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read Java's framing, or one raw block."""
    parts = list(snappy_pieces(data, magic, limit, max_frames))
    return parts[0] if len(parts) == 1 else b"".join(parts)


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


# -- lz4


def unlz4(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read lz4 frames; in magic 0 the header checksum is corrected first."""
    frames = lz4.with_standard_checksum(data) if magic == 0 else data
    package = package_of("lz4")
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
        return b"".join(lz4_pieces(data, magic, limit, max_frames))
    return parts[0] if len(parts) == 1 else b"".join(parts)


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


# -- zstd


def unzstd(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read zstd frames."""
    read = short_zstd(data, capacity(len(data), limit))
    return b"".join(zstd_pieces(data, magic, limit, max_frames)) if read is None else read


def short_zstd(data: bytes, limit: int) -> bytes | None:
    """Read one frame of 1 to `limit` bytes; None of others.

    The package ignores bytes after an empty frame.
    """
    package = package_of("zstd")
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


# -- by codec


def as_it_is(data: bytes, _magic: int, _limit: int, _max_frames: int) -> bytes:
    """Return the data: no codec."""
    return data


def whole(data: bytes, _magic: int, _limit: int, _max_frames: int) -> Iterator[bytes]:
    """Yield the data: no codec."""
    yield data


DECOMPRESSORS: Final[tuple[Callable[[bytes, int, int, int], bytes], ...]] = (
    as_it_is,
    gunzip,
    unsnappy,
    unlz4,
    unzstd,
)
PIECES: Final[tuple[Callable[[bytes, int, int, int], Iterator[bytes]], ...]] = (
    whole,
    gzip_pieces,
    snappy_pieces,
    lz4_pieces,
    zstd_pieces,
)
"""By codec."""
