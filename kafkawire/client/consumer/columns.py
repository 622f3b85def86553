"""Fetched records of one partition, as columns."""

from __future__ import annotations

from typing import NamedTuple

from ...records import Columns
from .offsets.partition_state import Position
from .partitions import TopicPartition


class FetchedColumns(NamedTuple):
    """Records of one partition: the rows from `start` to before `stop` of columns.

    position: of the first record. next_position: after the last one.
    """

    partition: TopicPartition
    columns: Columns
    start: int
    stop: int
    position: Position
    next_position: Position

    @property
    def rows(self) -> int:
        """The number of records."""
        return self.stop - self.start
