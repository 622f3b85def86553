"""Finds the next batch after corrupt bytes.

Only a batch with a valid checksum is accepted, and the search is bounded in bytes, candidates
and checksummed bytes.
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
"""Maximum bytes searched; batches are at most 1 MiB by default."""
CANDIDATES: Final = 10_000
SUMMED: Final = 1 << 26

FIRST_PIECE: Final = 1 << 12
LARGEST_PIECE: Final = 1 << 20
"""Bytes read at a time, initially and at most."""

OFFSET_LENGTH: Final = Struct(">qi")
STORED_CRC: Final = Struct(">I")
OVERHEAD: Final = 12
CRC_AT: Final = 17
CRC_FROM: Final = 21

REACH: Final = 0x7FFF_FFFF
"""Largest accepted offset distance: relative offsets in an index are int32."""


class Resynchronisation:
    """Searches a file for the next batch; one object serves all searches in a file.

    A search reads in proportion to its distance, and the budget for checksums of candidates is
    SUMMED at first and grows by the bytes read since: all searches together take linear time.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size
        self._left = SUMMED
        self._start = 0

    def next_batch(self, start: int, first_offset: int) -> int | None:
        """Find the position of the next complete batch of magic 2, from `start` on.

        first_offset: its smallest valid offset, negative after a corrupt batch; the largest is an
            int32 further.
        """
        last_offset = min(first_offset + REACH, MAX_INT64)
        if first_offset > last_offset:
            return None
        self._left = min(SUMMED, self._left + start - self._start)
        self._start = start
        # the upper half of an offset in that range is one of two values
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
        """Yield the positions of matches, each with the bytes of its offset and length."""
        position, window = start, b""
        for piece in pieces(self._stream, start):
            window += piece
            for match in pattern.finditer(window):
                start_of_match = match.start()
                yield (
                    position + start_of_match,
                    window[start_of_match : start_of_match + OFFSET_LENGTH.size],
                )
            rest = window[-TO_MAGIC + 1 :]  # a match may start here and end in the next chunk
            position += len(window) - len(rest)
            window = rest
            if position - start >= SEARCHED:
                return


def pieces(stream: BinaryIO, start: int) -> Iterator[bytes]:
    """Read a file from `start` on in chunks that double in size, so that little is read in vain."""
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
