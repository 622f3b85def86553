"""Reads several tables of a capture in one pass.

Each message is decoded at most once, however many tables need it; a table has the same rows as
when it is read alone.

    traffic --> [LocatedItem] --.-- raw frames ------> `passes` --> exchanges, partitions, records
                                `-- decoded rows ----> row makers of the other tables
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ..exchanges.exchanges import Ended
from ..frames.decoding import LocatedItem
from ..rows import Located
from . import connections, group_events, messages, problems
from .arrow.schemas import batches
from .columns import Columns
from .context import Context
from .passes import COLUMNAR, Columnar, TakeRecords

Values = tuple[Any, ...]
RowMaker = Callable[[Located | Ended | None], Iterable[Values]]
"""Handles the next row of a capture, or its end (None); returns the rows of a table."""


def _messages(context: Context) -> RowMaker:
    return lambda item: () if item is None else messages.rows_of(item, context)


def _problems(context: Context) -> RowMaker:
    return lambda item: () if item is None else problems.rows_of(item, context)


def _connections(context: Context) -> RowMaker:
    maker = connections.Connections(context)
    return lambda item: () if item is None else maker.handle(item)


def _group_events(context: Context) -> RowMaker:
    events = group_events.GroupEvents(context)

    def handle(item: Located | Ended | None) -> Iterable[Values]:
        return () if item is None else group_events.events(events.handle(item), context)

    return handle


MAKERS: Final[dict[str, tuple[Columns, Callable[[Context], RowMaker]]]] = {
    "messages": (messages.COLUMNS, _messages),
    "connections": (connections.COLUMNS, _connections),
    "group_events": (group_events.COLUMNS, _group_events),
    "problems": (problems.COLUMNS, _problems),
}
"""The tables that are made row by row."""


class Rows:
    """Collects the rows of a table into batches. size: rows of a batch."""

    def __init__(
        self, name: str, columns: Columns, make_rows: RowMaker, context: Context, size: int
    ) -> None:
        self.name = name
        self.size = size
        self._columns = columns
        self._make_rows = make_rows
        self._context = context
        self._rows: list[Values] = []

    @classmethod
    def of(cls, name: str, context: Context, size: int) -> Rows:
        """Return the collector of one of MAKERS."""
        columns, maker = MAKERS[name]
        return cls(name, columns, maker(context), context, size)

    def handle(self, item: Located | Ended | None) -> None:
        """Handle the next row of the capture, or its end (None)."""
        self._rows += self._make_rows(item)

    def batches(self, *, last: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return full batches, each with the table's name; with `last`, also the incomplete one."""
        count = len(self._rows)
        if not last:
            count -= count % self.size
        if count:
            rows, self._rows = self._rows[:count], self._rows[count:]
            for batch in batches(self._columns, rows, self.size, self._context.name_topics):
                yield self.name, batch


def read_together(
    context: Context,
    names: Sequence[str],
    size: int,
    more: Iterable[Rows] = (),
    take_records: TakeRecords | None = None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read several tables in one pass; each batch comes with its table's name.

    more: tables made row by row that are not among the names. take_records: as in `Columnar`.
    """
    wanted = COLUMNAR & set(names)
    columnar = Columnar(context, wanted, size, take_records)
    rows = [*(Rows.of(name, context, size) for name in names if name in MAKERS), *more]
    for batch in _small_batches(context, min([size, *(each.size for each in rows)])):
        if rows:
            for item in _decoded(context, batch, columnar if wanted else None):
                for each in rows:
                    each.handle(item)
                if columnar.is_full():
                    yield from columnar.batches()
        else:
            start = 0
            while start < len(batch):
                start = columnar.handle(batch, start)
                yield from columnar.batches()
        for each in rows:
            yield from each.batches()
    columnar.finish()
    yield from columnar.batches(last=True)
    for each in rows:
        each.handle(None)
        yield from each.batches(last=True)


def _decoded(
    context: Context, batch: list[LocatedItem | Ended], columnar: Columnar | None
) -> Iterator[Located | Ended]:
    """Decode the items of a batch; columnar: what collects them, too."""
    for located in batch:
        if isinstance(located, Ended):
            if columnar is not None:
                columnar.end(located)
            yield located
        else:
            item = context.decode(located)
            if columnar is not None:
                columnar.add(located, item.row)
            yield item


def _small_batches(context: Context, size: int) -> Iterator[list[LocatedItem | Ended]]:
    """Yield items in lists no longer than a batch, so that live rows are not delayed."""
    for batch in context.traffic.batches():
        if len(batch) <= size:
            yield batch
        else:
            yield from (batch[start : start + size] for start in range(0, len(batch), size))
