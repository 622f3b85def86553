"""Collects fetched record batches as columns, and returns their rows.

    batch ─▶ rows of `Columns` ─▶ run: rows, and the position after them ─▶ take(most rows)

Rows that are next to each other are returned together, whatever their batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple

from ....errors import WireError
from ....records import Batch, Budget, Columns
from ..columns import FetchedColumns
from ..offsets.partition_state import Position
from ..partitions import TopicPartition


class Run(NamedTuple):
    """Rows of one batch, perhaps none, and the position after it."""

    start: int
    stop: int
    position: Position


class ColumnRuns:
    """The records of several batches of one records field.

    bytes: those of the batches, decompressed.
    """

    def __init__(self, data: bytes) -> None:
        self.columns = Columns(data)
        self.bytes = 0
        self._runs: deque[Run] = deque()

    def __bool__(self) -> bool:
        """Whether there is any run."""
        return bool(self._runs)

    @property
    def end(self) -> Position | None:
        """The position after all runs; None without any."""
        return self._runs[-1].position if self._runs else None

    def skip(self, position: Position) -> None:
        """Move the position past a batch without adding its records."""
        self._runs.append(Run(self.columns.rows, self.columns.rows, position))

    def add(self, batch: Batch, first: int, position: Position) -> WireError | None:
        """Add the records of a batch from offset `first` on, up to a fault, which is returned.

        position: after the batch.
        """
        columns = self.columns
        row, buffers = columns.rows, len(columns.buffers)
        faults: list[WireError] = []
        batch.add_to(columns, Budget(batch.limits), faults)
        self.bytes += sum(map(len, columns.buffers[buffers:])) or batch.size
        stop = columns.rows
        start = bisect_left(self._offsets(), first, row, stop)
        if not faults:
            self._runs.append(Run(start, stop, position))
            return None
        if start < stop:
            last = self._offsets()[stop - 1]
            self._runs.append(Run(start, stop, position._replace(offset=last + 1)))
        return faults[0]

    def take(self, partition: TopicPartition, position: Position, most: int) -> FetchedColumns:
        """Return up to `most` rows that follow each other, of runs that there are.

        position: of the first row.
        """
        start = stop = self._runs[0].start
        after = position
        while self._runs and self._runs[0].start == stop:
            run = self._runs[0]
            if run.stop > start + most:
                if stop < start + most:
                    stop = start + most
                    after = run.position._replace(offset=self._offsets()[stop - 1] + 1)
                    self._runs[0] = run._replace(start=stop)
                break
            _, stop, after = self._runs.popleft()
        return FetchedColumns(partition, self.columns, start, stop, position, after)

    def _offsets(self) -> memoryview[int]:
        return memoryview(self.columns.offset.numbers).cast("q")
