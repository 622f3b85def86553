"""Bounds of decompression that all codecs share, and the errors of data beyond them.

Memory is allocated for actual output, never for a declared size: a first buffer grows with the
data, and what a stream has beyond it is read in pieces.
"""

from __future__ import annotations

from typing import Final

from ...errors import LimitExceeded
from ..limits import DEFAULT_RECORD_LIMITS

FIRST_BUFFER: Final = 32_768
GROWTH: Final = 8

MAX_FRAMES: Final = DEFAULT_RECORD_LIMITS.max_frames


def bomb(codec: str, size: int, limit: int) -> LimitExceeded:
    """Make the error for `size` bytes that decompress to more than `limit`."""
    ratio = limit / max(size, 1)
    return LimitExceeded(
        f"{codec}: {size} bytes become more than the {limit} allowed (over {ratio:.1f}:1)"
    )


def too_many(codec: str, frames: str, max_frames: int) -> LimitExceeded:
    """Make the error for a stream of more than `max_frames` members, frames or blocks."""
    return LimitExceeded(f"{codec}: more than the {max_frames} {frames} allowed")


def capacity(size: int, limit: int) -> int:
    """Return the size of the first buffer for the output of `size` bytes."""
    return min(limit, max(FIRST_BUFFER, GROWTH * size))
