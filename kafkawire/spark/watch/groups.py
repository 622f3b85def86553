"""The `group_events` of a batch: items of connections, group by group, with each group's state.

Law: a group is told by one machine, however many batches it spans; its state stands before its
items, as that of connections before their packets.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from ...capture.exchanges.exchanges import Exchange
from ...capture.files.blocks import NO_TIME
from ...capture.tables.group_events import Groups, events
from ..decode.chunk_rows import Portion
from ..decode.groups import ITEMS
from ..errors import ascii_safe
from ..plan.facts import Facts
from ..write.outputs import Output, packed
from .connections import GROUPS, Terms
from .snapshot import dump, load
from .state import BEFORE

FORGOTTEN_NS: Final = 86_400_000_000_000
"""Silence after which a group is forgotten."""


@ascii_safe
def tell_groups(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[pa.RecordBatch]:
    """Tell what happened to the groups of a partition; states and items come group by group, in
    order.
    """
    out = Output(terms.options)
    context = Portion(terms.names, [0] * len(terms.names), Facts())
    rows = (row for batch in batches for row in batch.to_pylist())
    for group_id, of_group in groupby(rows, key=lambda row: row["group_id"]):
        _tell(group_id, of_group, context, terms, out)
        yield from out.drain()
    yield from out.finish()


def _tell(
    group_id: str, rows: Iterable[dict[str, Any]], context: Portion, terms: Terms, out: Output
) -> None:
    groups, state, last_ns = None, b"", NO_TIME
    here = {"context": context, "names": context.names}
    for row in rows:
        if row["at"] == BEFORE:
            last_ns, state = row["n"], row["item"]
            continue
        groups = groups or (load(state, **here) if state else Groups(context))
        told = pickle.loads(row["item"])
        if isinstance(told, Exchange):
            out.rows(GROUPS, events(groups.handle(told), context))
            last_ns = max(last_ns, told.told.time_ns)
        else:
            groups.requested(told)
            last_ns = max(last_ns, told.row.time_ns)
    forgotten = NO_TIME < last_ns < terms.silent_ns - FORGOTTEN_NS
    if not terms.closing and not forgotten:
        state = state if groups is None else dump(groups, **here)
        values = (group_id, BEFORE, last_ns, state)
        arrays = [pa.array([value], f.type) for value, f in zip(values, ITEMS, strict=True)]
        body = packed(pa.RecordBatch.from_arrays(arrays, schema=ITEMS))
        out.other("state", GROUPS, 0, 0, body)
