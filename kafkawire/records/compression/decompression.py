"""Decompresses the records of batches, with limits on output, frames and time.

Memory is allocated for actual output, never for a declared size, and time is linear in the
bytes in and out. Each codec's package is imported on demand; a missing one raises
UnsupportedCompression with its name.

    gzip    RFC 1952, one or more members                    zlib-ng
    snappy  Java's framing (xerial), or one raw block        cramjam
    lz4     frames; magic 0 has a header checksum of its own lz4
    zstd    RFC 8878 frames                                  zstandard

Batches of one member or frame, which nearly all are, are decompressed at once. Others, and corrupt
ones, are read again in pieces (see `pieces`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import CorruptBatch, LimitExceeded, WireError
from ..limits import Budget
from . import gzip, lz4
from .codecs import Compression
from .packages import give_back, package_of, taken
from .pieces import (
    MAX_FRAMES,
    bomb,
    capacity,
    gzip_pieces,
    lz4_pieces,
    readable_part,
    snappy_pieces,
    zstd_pieces,
)


def decompress(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> bytes:
    """Decompress `data` to at most `limit` bytes, from at most `max_frames` members or frames.

    Raises LimitExceeded with the ratio reached, CorruptBatch if the data is corrupt.
    """
    return DECOMPRESSORS[codec](data, magic, limit, max_frames)


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


# -- gzip


def gunzip(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read every member of a gzip stream."""
    package = package_of("gzip")
    member = package.decompressobj(gzip.GZIP_WINDOW)
    try:
        first: bytes = member.decompress(data, limit + 1)
    except package.error as error:
        raise CorruptBatch(f"gzip: {error}") from None
    if len(first) > limit:
        raise bomb("gzip", len(data), limit)
    if not member.eof:
        raise CorruptBatch("gzip: the stream ends inside a member")
    if not member.unused_data:
        return first
    return b"".join(gzip_pieces(data, magic, limit, max_frames))


# -- snappy


def unsnappy(data: bytes, magic: int, limit: int, max_frames: int) -> bytes:
    """Read Java's framing, or one raw block."""
    parts = list(snappy_pieces(data, magic, limit, max_frames))
    return parts[0] if len(parts) == 1 else b"".join(parts)


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


# -- by codec


def as_it_is(data: bytes, _magic: int, _limit: int, _max_frames: int) -> bytes:
    """Return the data: no codec."""
    return data


DECOMPRESSORS: Final[tuple[Callable[[bytes, int, int, int], bytes], ...]] = (
    as_it_is,
    gunzip,
    unsnappy,
    unlz4,
    unzstd,
)
"""By codec."""
