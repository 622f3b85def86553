"""Makes the `group_events` table, whose groups span connections, in two steps.

The events of a group follow from its exchanges in the order in which a single process sees
them. The first step finds the exchanges, by connection; the second processes them, by group.

    Located | Ended --exchanges of group APIs--> | group | at | n | item | --by group--> events
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...capture.exchanges.exchanges import Ended, Exchange, Exchanges
from ...capture.multifile import file_and_packet
from ...capture.rows import Located, Row
from ...capture.tables.columns import BYTES, INT64, TEXT, Column, Columns
from ...capture.tables.context import Context
from ...capture.tables.group_events import APIS, CAUSES, Groups, events
from ...capture.tables.multiple import Rows
from ..plan.facts import Facts
from .outputs import ITEM

ITEMS: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("item", pa.binary()),
    ]
)
ITEM_ROWS: Final = 256

COLUMNS: Final[Columns] = (
    Column("kind", TEXT, "`item`."),
    Column("name", TEXT, "Set and group."),
    Column("at", INT64, "Sort key of the item among those of its group."),
    Column("n", INT64, "The same among items with equal `at`."),
    Column("body", BYTES, "The item, pickled."),
)
"""The columns of output rows (`outputs.OUT`)."""

Values = tuple[Any, ...]


class GroupItem(NamedTuple):
    """An exchange or request of a group. at, n: its place among those of the group."""

    group_id: str
    at: int
    n: int
    item: bytes


class GroupItems:
    """Finds the group exchanges of the connections of a partition. sets: the set of each file."""

    def __init__(self, facts: Facts, sets: Sequence[int]) -> None:
        self._facts = facts
        self._sets = sets
        self._pairs = Exchanges()
        self._n = -1

    def handle(self, item: Located | Ended | None) -> Iterator[Values]:
        """Handle the next row, or the end (None); returns output rows."""
        self._n += 1
        if item is None or item.connection is None:
            return
        n, known_at = self._n, self._facts.at
        set = self._sets[file_and_packet(item.connection)[0]]
        if isinstance(item, Located):
            row = item.row
            if row.direction == "request" and row.api_key in CAUSES:
                yield from _item(row, set, known_at, n, item)
            exchanges = self._pairs.take(item)
        else:
            exchanges = self._pairs.end(item.connection)
        for exchange in exchanges:
            api_key = exchange.main_row.api_key
            if api_key in APIS and (exchange.response is not None or api_key in CAUSES):
                yield from _item(exchange.request, set, known_at, n, exchange)


def _item(
    request: Row | None, set: int, known_at: int, n: int, item: Located | Exchange
) -> Iterator[Values]:
    message: Any = None if request is None else request.message
    if message is not None:
        # Invalid UTF-8 on the wire is kept as surrogates, which Arrow does not accept.
        group_id = message.group_id.encode("utf-8", "backslashreplace").decode()
        yield ITEM, f"{set} {group_id}", known_at, n, pickle.dumps(item)


def collected_items(context: Context, facts: Facts, sets: Sequence[int]) -> Rows:
    """Return the collector of the items of a partition, as output rows."""
    return Rows(ITEM, COLUMNS, GroupItems(facts, sets).handle, context, ITEM_ROWS)


def item_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[GroupItem]:
    """Read items from record batches of ITEMS."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ITEMS.names]
        yield from map(GroupItem, *columns)


def event_rows(items: Iterable[GroupItem], context: Context) -> Iterator[tuple[Any, ...]]:
    """Make the rows of the groups of a partition; items are sorted by group and in order."""
    for _, of_group in groupby(items, key=lambda one: one.group_id):
        groups = Groups(context)
        for one in of_group:
            item = pickle.loads(one.item)
            if isinstance(item, Exchange):
                yield from events(groups.handle(item), context)
            else:
                groups.requested(item)
