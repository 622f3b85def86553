"""The results of records that were sent together, one per row.

The machine's token of a row is a number, in place of a future: an object less for each record.

    token = number of the batch << ROW_BITS | row ─▶ result or error of each row
                                                       └─▶ all have one ─▶ the future of the batch
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, Protocol

from ...errors import counted

UNKNOWN: Final = -1
ROW_BITS: Final = 40
ROW_MASK: Final = (1 << ROW_BITS) - 1


class Metadata(Protocol):
    """The part of a record's result that is kept."""

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...


class SentRows:
    """The results of the rows of one batch.

    future: of what `result` makes of partitions and offsets. It raises the error of the first row
    that failed, once all rows have a result.
    """

    def __init__(self, rows: int, result: Callable[[array[int], array[int]], Any]) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.partitions = array("i", [UNKNOWN]) * rows
        self.offsets = array("q", [UNKNOWN]) * rows
        self.left = rows
        self.errors: dict[int, BaseException] = {}
        self._result = result

    def complete(self) -> None:
        """Complete the future."""
        if self.future.done():
            return
        if not self.errors:
            self.future.set_result(self._result(self.partitions, self.offsets))
            return
        first = min(self.errors)
        failed, rows = len(self.errors), len(self.offsets)
        note = f"row {first} of the batch; {failed} of {counted(rows, 'record')} failed"
        self.errors[first].add_note(note)
        self.future.set_exception(self.errors[first])


class SentBatches:
    """The batches of one producer whose rows have not all a result."""

    def __init__(self) -> None:
        self._batches: dict[int, SentRows] = {}
        self._last = 0

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._batches)

    def add(
        self, rows: int, result: Callable[[array[int], array[int]], Any]
    ) -> tuple[asyncio.Future[Any], Sequence[int]]:
        """Add a batch; returns its future, and the tokens of its rows."""
        sent = SentRows(rows, result)
        if not rows:
            sent.complete()
            return sent.future, ()
        self._last += 1
        self._batches[self._last] = sent
        first = self._last << ROW_BITS
        return sent.future, range(first, first + rows)

    def abandon(self, token: int, last: int) -> None:
        """Expect no result of the rows from a token to the last one: nobody has the future."""
        sent = self._batches[token >> ROW_BITS]
        sent.future.cancel()
        sent.left -= last - token + 1
        if not sent.left:
            self._complete(token)

    def place(self, tokens: Iterable[Hashable], partition: int, offsets: Iterable[int]) -> None:
        """Keep where rows are. The tokens of other records are passed over."""
        batches = self._batches
        for token, offset in zip(tokens, offsets, strict=False):
            if type(token) is int and (sent := batches.get(token >> ROW_BITS)) is not None:
                row = token & ROW_MASK
                sent.partitions[row] = partition
                sent.offsets[row] = offset
                sent.left -= 1
                if not sent.left:
                    self._complete(token)

    def fail(self, tokens: Iterable[Hashable], error: Callable[[], BaseException]) -> None:
        """Keep why rows were not delivered; error: makes an exception."""
        for token in tokens:
            if type(token) is int and (sent := self._batches.get(token >> ROW_BITS)) is not None:
                sent.errors[token & ROW_MASK] = error()
                sent.left -= 1
                if not sent.left:
                    self._complete(token)

    def follow(self, token: int, future: asyncio.Future[Any]) -> None:
        """Give a row the result of a record that is sent alone."""
        future.add_done_callback(partial(self._copy, token))

    def _copy(self, token: int, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self.fail([token], asyncio.CancelledError)
        elif (error := future.exception()) is not None:
            self.fail([token], lambda: error)
        else:
            metadata: Metadata = future.result()
            self.place([token], metadata.partition, repeat(metadata.offset))

    def _complete(self, token: int) -> None:
        self._batches.pop(token >> ROW_BITS).complete()
