"""The next batch after bytes that are none.

Law: only a batch whose checksum holds is believed, and the search is bounded in bytes, candidates
and bytes summed.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import BinaryIO, Final

from ..records.batch import HEADER_BYTES
from ..records.checksum import crc32c

SEARCHED: Final = 1 << 24
"""Bytes looked through; a batch is 1 MiB at most unless a broker is told otherwise."""
CANDIDATES: Final = 10_000
SUMMED: Final = 1 << 26

OFFSET_LENGTH: Final = Struct(">qi")
STORED_CRC: Final = Struct(">I")
OVERHEAD: Final = 12
CRC_AT: Final = 17
CRC_FROM: Final = 21


def next_batch(stream: BinaryIO, start: int, size: int, first_offset: int) -> int | None:
    """Find where the next whole batch of magic 2 begins, from `start` on.

    first_offset: the least offset it may have; the most is as far as an int32 reaches.
    """
    stream.seek(start)
    window = stream.read(SEARCHED)
    left = SUMMED
    # the upper half of an offset that close is one of two values
    halves = {(first_offset + step >> 32).to_bytes(4, "big") for step in (0, 0x7FFF_FFFF)}
    either = b"|".join(re.escape(half) for half in sorted(halves))
    pattern = re.compile(rb"(?=(?:" + either + rb")[\s\S]{12}\x02)")
    for count, match in enumerate(pattern.finditer(window)):
        if count == CANDIDATES or left <= 0:
            return None
        at = match.start()
        offset, length = OFFSET_LENGTH.unpack_from(window, at)
        whole = OVERHEAD + length
        if not first_offset <= offset <= first_offset + 0x7FFF_FFFF:
            continue
        if not HEADER_BYTES <= whole <= min(size - start - at, left):
            continue
        left -= whole
        stream.seek(start + at)
        if _is_sound(stream.read(whole)):
            return start + at
    return None


def _is_sound(data: bytes) -> bool:
    if len(data) < HEADER_BYTES:
        return False
    (stored,) = STORED_CRC.unpack_from(data, CRC_AT)
    return crc32c(data, CRC_FROM, len(data)) == int(stored)
