"""Computes the two checksums of record batches, without copying.

Magic 2 carries CRC-32C (Castagnoli) from its attributes to its end; magic 0 and 1 carry CRC-32
(IEEE) from the magic byte to the end.

CRC-32C comes from `castagnoli` if the CPU supports it, otherwise from the package crc32c, which is
a third as fast.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Final

from ..errors import WireError
from . import castagnoli

FOLDING: Final = castagnoli.available()


def crc32(data: bytes, start: int, end: int) -> int:
    """Compute the CRC-32 of `data[start:end]`."""
    return zlib.crc32(memoryview(data)[start:end])


def crc32c(data: bytes, start: int, end: int) -> int:
    """Compute the CRC-32C of `data[start:end]`."""
    if FOLDING:
        return castagnoli.crc32c(data, start, end, 0)
    return crc32c_function()(memoryview(data)[start:end])


def crc32c_after(crc: int, data: bytes) -> int:
    """Compute the CRC-32C of `data`, continuing from the checksum `crc` (0 for none)."""
    if FOLDING:
        return castagnoli.crc32c(data, 0, len(data), crc)
    return crc32c_function()(data, crc)


@cache
def crc32c_function() -> Callable[..., int]:
    """Import the function that computes the CRC-32C of a buffer."""
    try:
        from crc32c import crc32c as function
    except ImportError as error:
        raise WireError("CRC-32C needs the package crc32c, which is not installed") from error
    return function
