"""Finds the next batch after bytes that are not a batch.

Law: only a batch whose checksum holds is believed, and the search is bounded in bytes, candidates
and bytes summed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, Final

from ..records.batch import HEADER_BYTES
from ..records.batches import TO_MAGIC
from ..records.checksum import crc32c
from .files import MAX_INT64

SEARCHED: Final = 1 << 24
"""Bytes searched; a batch is 1 MiB at most unless a broker is configured otherwise."""
CANDIDATES: Final = 10_000
SUMMED: Final = 1 << 26

FIRST_PIECE: Final = 1 << 12
LARGEST_PIECE: Final = 1 << 20
"""Bytes read at a time, at first and at most."""

OFFSET_LENGTH: Final = Struct(">qi")
STORED_CRC: Final = Struct(">I")
OVERHEAD: Final = 12
CRC_AT: Final = 17
CRC_FROM: Final = 21

REACH: Final = 0x7FFF_FFFF
"""How far behind the last offset the next may be: an index's relative offsets are int32."""


class Resynchronisation:
    """Searches a file for its next batches; one stands for all searches in one file.

    What a search reads is in proportion to how far it gets, and what candidates may cost to
    checksum is SUMMED at first and then as much as the file was read further: so all searches
    together take time linear in the file.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size
        self._left = SUMMED
        self._start = 0

    def next_batch(self, start: int, first_offset: int) -> int | None:
        """Find where the next whole batch of magic 2 begins, from `start` on.

        first_offset: the least offset it may have, negative where a corrupt batch came before; the
            most is as far as an int32 reaches.
        """
        last_offset = min(first_offset + REACH, MAX_INT64)
        if first_offset > last_offset:
            return None
        self._left = min(SUMMED, self._left + start - self._start)
        self._start = start
        # the upper half of an offset that close is one of two values
        halves = {
            (offset >> 32).to_bytes(4, "big", signed=True) for offset in (first_offset, last_offset)
        }
        either = b"|".join(re.escape(half) for half in sorted(halves))
        pattern = re.compile(rb"(?=(?:" + either + rb")[\s\S]{12}\x02)")
        for count, (at, head) in enumerate(self._candidates(pattern, start)):
            if count == CANDIDATES or self._left <= 0:
                return None
            offset, length = OFFSET_LENGTH.unpack(head)
            whole = OVERHEAD + length
            if not first_offset <= offset <= last_offset:
                continue
            if not HEADER_BYTES <= whole <= min(self._size - at, self._left):
                continue
            self._left -= whole
            self._stream.seek(at)
            if _is_sound(self._stream.read(whole)):
                return at
        return None

    def _candidates(self, pattern: re.Pattern[bytes], start: int) -> Iterator[tuple[int, bytes]]:
        """Yield where the pattern matches, with the offset and length that stand there."""
        at, window = start, b""
        for piece in pieces(self._stream, start):
            window += piece
            for match in pattern.finditer(window):
                found = match.start()
                yield at + found, window[found : found + OFFSET_LENGTH.size]
            rest = window[-TO_MAGIC + 1 :]  # a match may begin here and end in the next piece
            at += len(window) - len(rest)
            window = rest
            if at - start >= SEARCHED:
                return


def pieces(stream: BinaryIO, start: int) -> Iterator[bytes]:
    """Read a file from `start` on in pieces that double, so that little is read in vain."""
    size = FIRST_PIECE
    while True:
        stream.seek(start)
        piece = stream.read(size)
        if not piece:
            return
        yield piece
        start += len(piece)
        size = min(size * 2, LARGEST_PIECE)


def _is_sound(data: bytes) -> bool:
    if len(data) < HEADER_BYTES:
        return False
    (stored,) = STORED_CRC.unpack_from(data, CRC_AT)
    return crc32c(data, CRC_FROM, len(data)) == int(stored)
