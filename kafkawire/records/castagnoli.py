"""CRC-32C of a part of a buffer: what `castagnoli.c` does by carry-less multiplication, where no
compiler made it, by the package crc32c.

Law: `available` says whether the other function is faster than the package. Here it is not; there
it is on processors that multiply in 512-bit registers.
"""

from __future__ import annotations


def available() -> bool:
    """Say whether `crc32c` is the one to use."""
    return False


def crc32c(data: bytes, start: int, end: int, after: int) -> int:
    """Compute the CRC-32C of `data[start:end]` behind bytes whose own is `after`, 0 for none.

    Raises ValueError for a part that is not in the data.
    """
    if not 0 <= start <= end <= len(data):
        raise ValueError(f"there is no [{start}:{end}] in {len(data)} bytes")
    from crc32c import crc32c as of_package

    return of_package(memoryview(data)[start:end], after)
