"""Finds the blocks of zstd frames (RFC 8878).

28 b5 2f fd │ descriptor │ [window: 1] │ [dictionary: 1, 2, 4] │ [content size: 1, 2, 4, 8] │
(header: uint24 LE, bit 0 last, bits 1-2 kind, then size; block)* │ [checksum: 4]
5x 2a 4d 18 │ size: uint32 LE │ so many bytes that are skipped
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...magic_numbers import is_skippable

SINGLE_SEGMENT: Final = 0x20
CHECKSUM: Final = 0x04
DICTIONARY_BYTES: Final = (0, 1, 2, 4)
CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
RUN_BLOCK: Final = 1
"""The block type of one byte, repeated."""


def block_ends(data: bytes, start: int) -> Iterator[int]:
    """Yield the end of the header, of each block and of the checksum of the frame at `start`.

    The last is the end of the frame. Nothing is checked: a truncated or malformed frame ends with
    the data at the latest.
    """
    end = len(data)
    if is_skippable(data[start : start + 4]):
        yield min(start + 8 + int.from_bytes(data[start + 4 : start + 8], "little"), end)
        return
    descriptor = data[start + 4] if start + 4 < end else 0
    single = descriptor & SINGLE_SEGMENT != 0
    pos = start + 5 + (0 if single else 1) + DICTIONARY_BYTES[descriptor & 3]
    pos += CONTENT_SIZE_BYTES[descriptor >> 6] or single
    is_last = False
    while not is_last and pos < end:
        yield pos
        header = int.from_bytes(data[pos : pos + 3], "little")
        is_last = header & 1 != 0
        pos += 3 + (1 if header >> 1 & 3 == RUN_BLOCK else header >> 3)
    if pos < end and descriptor & CHECKSUM:
        yield pos
        pos += 4
    yield min(pos, end)
