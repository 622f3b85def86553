"""Computes CRC-32C with the package crc32c: the interpreted version of `castagnoli.c`.

`available` says whether this `crc32c` is faster than the package. Here it is not; in C it is,
on CPUs with carry-less multiplication in 256-bit or 512-bit registers.
"""

from __future__ import annotations

from typing import Final

function: Final = None
"""In C, a capsule of the function for other C modules."""


def available() -> bool:
    """Return whether `crc32c` is faster than the package."""
    return False


def crc32c(data: bytes, start: int, end: int, after: int) -> int:
    """Compute the CRC-32C of `data[start:end]`, continuing from the checksum `after` (0 for none).

    Raises ValueError for a part that is not in the data.
    """
    if not 0 <= start <= end <= len(data):
        raise ValueError(f"range [{start}:{end}] is outside {len(data)} bytes")
    from crc32c import crc32c as of_package

    return of_package(memoryview(data)[start:end], after)
