"""The results of records that were sent together, one per row.

A row is the machine's token of its record, in place of a future.

    rows ─▶ result or error of each ─▶ all have one ─▶ the future of the whole
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from ...errors import counted

NEW: Final = tuple.__new__
UNKNOWN: Final = -1


class Metadata(Protocol):
    """The part of a record's result that is kept."""

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...


class SentRows:
    """The results of some rows. future: of what `result` makes of partitions and offsets.

    Raises the error of the first row that failed, once all rows have a result.
    """

    def __init__(self, rows: int, result: Callable[[array[int], array[int]], Any]) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.partitions = array("i", [UNKNOWN]) * rows
        self.offsets = array("q", [UNKNOWN]) * rows
        self._result = result
        self._left = rows
        self._errors: dict[int, BaseException] = {}

    def tokens(self) -> list[Row]:
        """Make the tokens of all rows, without bytecode for each."""
        rows = len(self.offsets)
        return list(map(NEW, repeat(Row), zip(repeat(self), range(rows), strict=False)))

    def complete(self, error: BaseException | None = None, row: int = 0) -> None:
        """Count the result of a row. Completes the future after the last one."""
        if error is not None:
            self._errors[row] = error
        self._left -= 1
        if self._left > 0 or self.future.done():
            return
        if not self._errors:
            self.future.set_result(self._result(self.partitions, self.offsets))
            return
        first = min(self._errors)
        failed, rows = len(self._errors), len(self.offsets)
        note = f"row {first} of the batch; {failed} of {counted(rows, 'record')} failed"
        self._errors[first].add_note(note)
        self.future.set_exception(self._errors[first])


class Row(NamedTuple):
    """The token of one row: as much of a future as a producer uses."""

    sent: SentRows
    row: int

    def done(self) -> bool:
        """Whether the whole is: each row has one result."""
        return self.sent.future.done()

    def set_result(self, metadata: Metadata) -> None:
        """Keep where the record is."""
        sent, row = self
        sent.partitions[row] = metadata.partition
        sent.offsets[row] = metadata.offset
        sent.complete()

    def set_exception(self, error: BaseException) -> None:
        """Keep why the record was not delivered."""
        self.sent.complete(error, self.row)

    def exception(self) -> BaseException | None:
        """Retrieve the error of the whole, if it failed: whoever commits sees it."""
        future = self.sent.future
        return future.exception() if future.done() and not future.cancelled() else None

    def copy(self, future: asyncio.Future[Any]) -> None:
        """Take the result of a record that was sent alone."""
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(future.result())
