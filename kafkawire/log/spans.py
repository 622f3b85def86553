"""Finds the positions of batches in a segment from their headers.

Reads forward only, with one header in memory; ends at the first invalid batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from ..errors import WireError
from ..records import Batch
from ..records.batch import HEADER_BYTES
from ..records.batches import SMALLEST_LENGTH
from ..records.legacy import LOG_OVERHEAD
from ..records.record import NO_TIMESTAMP

LENGTH: Final = Struct(">i")


class Span(NamedTuple):
    """A batch: its position, its offsets, its largest timestamp.

    base_offset: in magic 0 and 1, whose header lacks it, the offset after the previous batch.
    """

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def spans(stream: BinaryIO) -> Iterator[Span]:
    """Yield the spans of a segment's batches."""
    size = os.fstat(stream.fileno()).st_size
    position = index = 0
    after = 0
    while True:
        stream.seek(position)
        head = stream.read(HEADER_BYTES)
        if len(head) < LOG_OVERHEAD + SMALLEST_LENGTH:
            return
        length = LENGTH.unpack_from(head, 8)[0]
        end = position + LOG_OVERHEAD + length
        if length < SMALLEST_LENGTH or end > size:
            return
        try:
            batch = Batch(head, 0, min(end - position, len(head)), index)
        except WireError:
            return
        base = batch.base_offset if batch.magic == 2 else after
        yield Span(position, base, batch.last_offset, batch.max_timestamp)
        after = batch.last_offset + 1
        position = end
        index += 1


class SpanWalk:
    """A cursor over spans that advances up to a condition.

    current: the current span; None after the last.
    latest_before: the largest timestamp of the spans before it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._spans = spans(stream)
        self.current = next(self._spans, None)
        self.latest_before = NO_TIMESTAMP

    def until(self, reached: Callable[[Span], bool]) -> Span | None:
        """Advance to the first span, from the current one on, that satisfies a condition."""
        while self.current is not None and not reached(self.current):
            self.latest_before = max(self.latest_before, self.current.max_timestamp)
            self.current = next(self._spans, None)
        return self.current
