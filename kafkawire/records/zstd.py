"""zstd with contexts that are kept: making one takes longer than reading or writing a small batch.

Law: a context is used by one thread at a time, which takes it and gives it back unless it failed; a
kept one reads one whole frame that says how long it is, and leaves all others to its caller.

    take | make --> compress, decompress --> give back
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any, Final

from ..errors import UnsupportedCompression

PACKAGE: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

MOST_KEPT: Final = 4
"""Contexts of a kind that are kept."""

DEAREST_LEVEL: Final = 9
"""The highest level whose context is kept: those above take tens of megabytes."""

SMALL: Final = 1 << 18
"""Bytes of content up to which making a context matters."""

_writers: Final[dict[int | None, list[Any]]] = {}
_readers: Final[list[Any]] = []


@cache
def writing() -> Any:
    """Import the package that writes frames."""
    try:
        return importlib.import_module(PACKAGE)
    except ImportError as error:
        raise UnsupportedCompression(
            f"zstd needs the package {PACKAGE}, which is not installed"
        ) from error


@cache
def reading() -> Any:
    """Import the package whose readers can be kept; None where it is not installed."""
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        return None


def compressed(data: bytes, level: int | None) -> bytes:
    """Write one frame."""
    idle = _writers.setdefault(level, [])
    writer = idle.pop() if idle else writing().ZstdCompressor(level)
    frame: bytes = writer.compress(data, writer.FLUSH_FRAME)
    if len(idle) < MOST_KEPT and (level is None or level <= DEAREST_LEVEL):
        idle.append(writer)
    return frame


def decompressed(data: bytes, limit: int) -> bytes | None:
    """Read one frame that says it holds little; None where this is not that, or is broken, or no
    package keeps readers.
    """
    package = reading()
    if package is None:
        return None
    reader = _readers.pop() if _readers else package.ZstdDecompressor()
    try:
        if not 0 <= package.frame_content_size(data) <= min(limit, SMALL):
            return None
        content: bytes = reader.decompress(data, allow_extra_data=False)
    except package.ZstdError:
        return None
    else:
        return content
    finally:
        if len(_readers) < MOST_KEPT:
            _readers.append(reader)
