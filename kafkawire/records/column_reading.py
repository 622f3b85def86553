"""Decodes the records of a batch into columns, some at a time.

The records are those of `Batch.records` with `faults`, and memory is that of a window, or of a
record that is larger. A compressed batch of more than WINDOW_BYTES is decompressed twice: first for
its size and faults, since a batch beyond a limit has no records, then window by window.

    compressed --pieces--> window: whole records, then the start of one --.--> columns
                              ^------------- joined with the next pieces --'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from mypy_extensions import i64

from ..errors import LimitExceeded, WireError
from .batch import HEADER_BYTES, Batch
from .column_decoding import add_some
from .columns import Columns
from .compression.codecs import COMPRESSION_BITS, codec_of
from .compression.decompression import pieces
from .cursor import Cursor
from .decoding import SMALLEST_RECORD
from .legacy import Span
from .limits import Budget

WINDOW_BYTES: Final = 1 << 22
"""Decompressed bytes that are decoded together; a larger record is decoded by itself."""

GROWTH: Final = 2
"""How much larger each window is that still has no whole record."""


@final
class ColumnReader:
    """Adds the records of a batch to columns.

    ended: whether there are no more. window: the bytes that the next records are in. Raises
    WireError if the batch has no records: beyond a limit, or with a wrong checksum.
    """

    def __init__(self, batch: Batch, budget: Budget) -> None:
        self.batch: Batch = batch
        self.ended: bool = False
        self.window: bytes = batch.data
        self._cursor: Cursor = Cursor(b"", 0, 0)
        self._left: i64 = 0  # records of the batch
        self._here: i64 = 0  # records of the window
        self._spans: list[Span] = []
        self._pieces: Iterator[bytes] | None = None
        self._rest: bytes = b""
        if batch.magic != 2:
            messages = batch.messages(budget)
            self.window, self._spans = messages.data, messages.spans
            self._here = self._left = len(self._spans)
        elif not self._open(budget):
            self._open_windows(budget)
        self.ended = self._left == 0

    def _open(self, budget: Budget) -> bool:
        """Decompress a batch of one window; return whether it is that small."""
        limits = budget.limits
        largest = budget.batch_bytes()
        if largest > WINDOW_BYTES:
            limits = limits._replace(max_batch_bytes=WINDOW_BYTES)
        small = Budget(limits)
        small.bytes_left, small.records_left = budget.bytes_left, budget.records_left
        try:
            data, start, end, count, _ = self.batch.contents(small)
        except LimitExceeded:
            if largest <= WINDOW_BYTES or not self.batch.attributes & COMPRESSION_BITS:
                raise
            return False
        budget.bytes_left, budget.records_left = small.bytes_left, small.records_left
        self.window, self._here, self._left = data, count, count
        self._cursor = Cursor(data, start, end)
        return True

    def _open_windows(self, budget: Budget) -> None:
        """Decompress a batch for its size only, and begin again."""
        batch = self.batch
        batch.check(budget)
        limit = budget.batch_bytes()
        size: i64 = 0
        try:
            for piece in self._decompressed(limit):
                size += len(piece)
        except LimitExceeded:
            budget.spend_bytes(limit)  # this many bytes were decompressed to detect it
            raise
        except WireError:
            pass  # the records before the fault are read; `problems` reports it
        budget.spend_bytes(int(size))
        self._left = min(i64(batch.records_count), size // SMALLEST_RECORD)
        self._pieces = self._decompressed(limit)

    def _decompressed(self, limit: int) -> Iterator[bytes]:
        batch = self.batch
        codec = codec_of(batch.attributes, batch.magic)
        stream = batch.data[batch.start + HEADER_BYTES : batch.end]
        return pieces(codec, stream, batch.magic, limit, batch.limits.max_frames)

    def fill(self) -> None:
        """Read the next window, if the records of this one were added."""
        size: i64 = WINDOW_BYTES
        while self._here == 0 and self._left > 0 and self._pieces is not None:
            data = self._joined(size)
            count, end = whole_records(data, self._left)
            self.window, self._rest = data, data[end:]
            self._cursor = Cursor(data, 0, end)
            self._here = count
            size = GROWTH * i64(len(data))
        if self._here == 0:
            self.ended = True

    def _joined(self, size: i64) -> bytes:
        """Return the rest of the last window and more, to `size` bytes or the end."""
        parts = [self._rest]
        length: i64 = len(self._rest)
        while length < size and self._pieces is not None:
            piece = self._piece()
            parts.append(piece)
            length += len(piece)
        return b"".join(parts)

    def _piece(self) -> bytes:
        assert self._pieces is not None
        try:
            return next(self._pieces)
        except (StopIteration, WireError):
            self._pieces = None
            return b""

    def add(self, columns: Columns, most: int, buffer: int) -> None:
        """Add up to `most` records of the window, which is a buffer of the columns."""
        count = min(i64(most), self._here)
        if self._spans:
            self._add_spans(columns, count, buffer)
        else:
            batch = self.batch
            fault = add_some(
                columns,
                self._cursor,
                self.window,
                count,
                batch.base_offset,
                batch.base_timestamp,
                batch.max_timestamp,
                batch.log_append,
                batch.index,
                buffer,
            )
            if fault is not None:
                count = self._left
                self._here = count
        self._here -= count
        self._left -= count
        self.ended = self._left == 0

    def _add_spans(self, columns: Columns, count: i64, buffer: int) -> None:
        first = len(self._spans) - int(self._left)
        for span in self._spans[first : first + int(count)]:
            columns.add_span(self.window, span, self.batch.index, buffer)


def whole_records(data: bytes, most: i64) -> tuple[i64, i64]:
    """Find the complete records at the start of some bytes: their number, and where they end.

    A record whose length is invalid counts as complete.
    """
    end: i64 = len(data)
    cursor = Cursor(data, 0, end)
    count: i64 = 0
    stop: i64 = 0
    while count < most and stop < end:
        try:
            length = cursor.varint(data)
        except WireError:
            if end - stop > LONGEST_VARINT:
                return count + 1, end
            break
        if length < 0:
            return count + 1, end
        if length > end - cursor.pos:
            break
        stop = cursor.pos + length
        cursor.pos = stop
        count += 1
    return count, stop


LONGEST_VARINT: Final = 10
"""Bytes after which a varint that has not ended is invalid."""
