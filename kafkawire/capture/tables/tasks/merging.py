"""Merges what the tasks of a capture give, in their order.

The record batches have the rows of one process, in the same order.

    Made --.--> batches of most tables
           `--> ConnectionStats, by connection --end--> rows of connections
    rows of group_events -----------------------------> batches
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .. import connections, group_events
from ..arrow.schemas import batches
from ..context import Context
from .making import CONNECTIONS, Counted
from .splitting import GROUP_EVENTS, Splitter

Values = tuple[Any, ...]


class Merger:
    """Merges results of tasks. size: rows of a batch at most."""

    def __init__(self, context: Context, splitter: Splitter, size: int) -> None:
        self._context = context
        self._splitter = splitter
        self._size = size
        self._connections = connections.Connections(context)
        self._connection_rows: list[Values] = []

    def add(self, counted: Iterable[Counted]) -> None:
        """Add what a task says of connections."""
        for connection, stats, ended in counted:
            if ended is None:
                self._connections.merge(connection, stats)
            else:
                self._connection_rows += self._connections.handle(ended)

    def batches(self, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return full batches of the tables merged here; with `last`, also incomplete ones."""
        for name, columns, rows in (
            (CONNECTIONS, connections.COLUMNS, self._connection_rows),
            (GROUP_EVENTS, group_events.COLUMNS, self._splitter.group_rows),
        ):
            count = len(rows) if last else len(rows) - len(rows) % self._size
            for batch in batches(columns, rows[:count], self._size, self._context.name_topics):
                yield name, batch
            del rows[:count]
