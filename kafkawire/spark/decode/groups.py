"""Makes the `group_events` table, whose groups span connections, in two steps.

Law: the events of a group follow from its exchanges in the order in which a single process sees
them. The first step finds the exchanges, by connection; the second processes them, by group.

    Located | Ended --exchanges of group APIs--> | group | at | n | item | --by group--> events
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...capture.exchanges.exchanges import Exchange, Exchanges
from ...capture.multifile import file_and_packet
from ...capture.rows import Located, Row
from ...capture.tables.context import Context
from ...capture.tables.group_events import APIS, CAUSES, Groups, events
from .decoding import BucketContext, BucketTraffic
from .outputs import OUT

ITEMS: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("item", pa.binary()),
    ]
)
ITEM_ROWS: Final = 256


class GroupItem(NamedTuple):
    """An exchange or request of a group. at, n: its place among those of the group."""

    group_id: str
    at: int
    n: int
    item: bytes


def items(
    context: BucketContext, traffic: BucketTraffic, sets: Sequence[int]
) -> Iterator[tuple[str, int, int, bytes]]:
    """Find the group exchanges of the connections of a partition. sets: the set of each file."""
    pairs = Exchanges()
    for n, item in enumerate(context.located()):
        at = traffic.facts.at
        if item.connection is None:
            continue
        set = sets[file_and_packet(item.connection)[0]]
        if isinstance(item, Located):
            row = item.row
            if row.direction == "request" and row.api_key in CAUSES:
                yield from _item(row, set, at, n, item)
            found = pairs.take(item)
        else:
            found = pairs.end(item.connection)
        for exchange in found:
            api_key = exchange.main_row.api_key
            if api_key in APIS and (exchange.response is not None or api_key in CAUSES):
                yield from _item(exchange.request, set, at, n, exchange)


def _item(
    request: Row | None, set: int, at: int, n: int, item: Located | Exchange
) -> Iterator[tuple[str, int, int, bytes]]:
    message: Any = None if request is None else request.message
    if message is not None:
        # Invalid UTF-8 on the wire is kept as surrogates, which Arrow does not accept.
        group_id = message.group_id.encode("utf-8", "backslashreplace").decode()
        yield f"{set} {group_id}", at, n, pickle.dumps(item)


def item_batches(rows: Iterable[tuple[str, int, int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Make record batches of items."""
    buffered: list[tuple[str, int, int, bytes]] = []
    for row in rows:
        buffered.append(row)
        if len(buffered) == ITEM_ROWS:
            yield _batch(buffered)
            buffered = []
    if buffered:
        yield _batch(buffered)


def _batch(rows: list[tuple[str, int, int, bytes]]) -> pa.RecordBatch:
    columns = (["item"] * len(rows), *zip(*rows, strict=True))
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, OUT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUT)


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
