"""Decompresses the records of batches, with limits on output, frames and time.

Memory is allocated for actual output, never for a declared size, and time is linear in the
bytes in and out. Each codec's package is imported on demand; a missing one raises
UnsupportedCompression with its name.

    gzip    RFC 1952, one or more members; parts of doubling size    zlib-ng
    snappy  Java's framing (xerial), or one raw block; blocks        cramjam
    lz4     frames; magic 0 has a header checksum of its own; blocks lz4
    zstd    RFC 8878 frames; blocks                                  zstandard

Batches of one member or frame, which nearly all are, are decompressed at once. Others, and corrupt
ones, are read again in pieces: the output before a fault is yielded before the fault is raised.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import LimitExceeded, WireError
from ..limits import Budget
from .bounds import MAX_FRAMES
from .codecs import CODECS, Compression


def decompress(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> bytes:
    """Decompress `data` to at most `limit` bytes, from at most `max_frames` members or frames.

    Raises LimitExceeded with the ratio reached, CorruptBatch if the data is corrupt.
    """
    read = CODECS[codec].decompress
    return read(data, magic, limit, max_frames)


def pieces(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> Iterator[bytes]:
    """Decompress in pieces; the same errors, after the output before them."""
    read = CODECS[codec].pieces
    return read(data, magic, limit, max_frames)


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


def readable_part(
    codec: Compression, data: bytes, magic: int, limit: int, max_frames: int = MAX_FRAMES
) -> bytes:
    """Decompress corrupt `data` up to its fault.

    Returns all gzip output before the fault, and whole blocks of lz4, zstd and Java's snappy
    framing; nothing of a corrupt raw block of snappy.
    """
    parts: list[bytes] = []
    try:
        for part in pieces(codec, data, magic, limit, max_frames):
            parts.append(part)  # not `extend`: output before an error is kept
    except WireError:
        pass  # already reported by `decompress`
    return b"".join(parts)
