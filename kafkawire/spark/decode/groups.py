"""The `group_events` table, whose groups cross connections: told in two steps.

Law: what happens to a group is told from its exchanges in the order in which a single process sees
them; the first step finds them, connection by connection, the second takes them group by group.

    Located | Ended --exchanges of group APIs--> | group | at | n | item | --by group--> events
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from ...capture.engine import Located
from ...capture.exchanges.exchanges import Exchange, Exchanges
from ...capture.multifile import place_of
from ...capture.rows import Row
from ...capture.tables.context import Context
from ...capture.tables.group_events import COMMITS, Groups, events
from ...capture.tables.groups.classic import HANDLERS
from ...capture.tables.groups.heartbeat import PROTOCOLS
from ...messages.api_key import ApiKey
from ..write.outputs import OUT
from .decoding import Gathering, Traffic

APIS: Final = frozenset({*HANDLERS, *PROTOCOLS, *COMMITS})
"""API keys that tell of groups."""

CAUSES: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP, *PROTOCOLS})
"""API keys of requests that may start a rebalance, which counts from when they are sent."""

ITEMS: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("item", pa.binary()),
    ]
)
ITEM_ROWS: Final = 256


def items(
    context: Gathering, traffic: Traffic, sets: Sequence[int]
) -> Iterator[tuple[str, int, int, bytes]]:
    """Find what a partition's connections say of groups; sets: of each file."""
    pairs = Exchanges()
    for n, item in enumerate(context.located()):
        at = traffic.facts.at
        if item.connection is None:
            continue
        set = sets[place_of(item.connection)[0]]
        if isinstance(item, Located):
            row = item.row
            if row.direction == "request" and row.api_key in CAUSES:
                yield from _item(row, set, at, n, item)
            found = pairs.take(item)
        else:
            found = pairs.end(item.connection)
        for exchange in found:
            api_key = exchange.told.api_key
            if api_key in APIS and (exchange.response is not None or api_key in CAUSES):
                yield from _item(exchange.request, set, at, n, exchange)


def _item(
    request: Row | None, set: int, at: int, n: int, told: Located | Exchange
) -> Iterator[tuple[str, int, int, bytes]]:
    message: Any = None if request is None else request.message
    if message is not None:
        # Text that is no UTF-8 on the wire is kept as it is, and Arrow takes none of that.
        group_id = message.group_id.encode("utf-8", "backslashreplace").decode()
        yield f"{set} {group_id}", at, n, pickle.dumps(told)


def item_batches(rows: Iterable[tuple[str, int, int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Make batches of items."""
    held: list[tuple[str, int, int, bytes]] = []
    for row in rows:
        held.append(row)
        if len(held) == ITEM_ROWS:
            yield _batch(held)
            held = []
    if held:
        yield _batch(held)


def _batch(rows: list[tuple[str, int, int, bytes]]) -> pa.RecordBatch:
    columns = (["item"] * len(rows), *zip(*rows, strict=True))
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, OUT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUT)


def event_rows(batches: Iterable[pa.RecordBatch], context: Context) -> Iterator[tuple[Any, ...]]:
    """Tell what happened to the groups of a partition; items come group by group, in order."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for _, of_group in groupby(rows, key=lambda row: row["group_id"]):
        groups = Groups(context)
        for row in of_group:
            told = pickle.loads(row["item"])
            if isinstance(told, Exchange):
                yield from events(groups.handle(told), context)
            else:
                groups.requested(told)
