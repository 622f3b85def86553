"""Makes the `group_events` of a batch: group items, by group, with the state of each group.

One machine processes a group, however many batches it spans. Its state is sorted before its
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
from ..decode.chunk_rows import ChunkContext
from ..decode.groups import ITEMS
from ..decode.outputs import Output, serialise
from ..errors import DamagedCheckpoint, ascii_safe
from ..plan.facts import Facts
from .connections import GROUPS, BatchSettings, readable_checkpoint
from .state import BEFORE

FORGOTTEN_NS: Final = 86_400_000_000_000
"""Silence after which the state of a group is dropped."""


@ascii_safe
def group_event_batches(
    batches: Iterable[pa.RecordBatch], settings: BatchSettings
) -> Iterator[pa.RecordBatch]:
    """Make the events of the groups of a partition.

    States and items are sorted by group and in order.
    """
    out = Output(settings.options)
    context = ChunkContext(settings.names, [0] * len(settings.names), Facts())
    rows = (row for batch in batches for row in batch.to_pylist())
    with readable_checkpoint():
        for group_id, of_group in groupby(rows, key=lambda row: row["group_id"]):
            _decode_group(group_id, of_group, context, settings, out)
            yield from out.drain()
    yield from out.finish()


def group_states(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pass on rows of a checkpoint. Raises DamagedCheckpoint for one that would be an item.

    Items are pickled, and only ever come from the job itself.
    """
    if any(position != BEFORE for position in batch.column("at").to_pylist()):
        raise DamagedCheckpoint("a row that is not the state of a group")
    yield batch


def _decode_group(
    group_id: str,
    rows: Iterable[dict[str, Any]],
    context: ChunkContext,
    settings: BatchSettings,
    out: Output,
) -> None:
    groups, state, last_ns = None, b"", NO_TIME
    for row in rows:
        if row["at"] == BEFORE:
            last_ns, state = row["n"], row["item"]
            continue
        groups = groups or (Groups.restore(context, state) if state else Groups(context))
        item = pickle.loads(row["item"])
        if isinstance(item, Exchange):
            out.rows(GROUPS, events(groups.handle(item), context))
            last_ns = max(last_ns, item.main_row.time_ns)
        else:
            groups.requested(item)
            last_ns = max(last_ns, item.row.time_ns)
    forgotten = NO_TIME < last_ns < settings.silent_ns - FORGOTTEN_NS
    if not settings.closing and not forgotten:
        state = state if groups is None else groups.snapshot()
        values = (group_id, BEFORE, last_ns, state)
        arrays = [pa.array([value], f.type) for value, f in zip(values, ITEMS, strict=True)]
        body = serialise(pa.RecordBatch.from_arrays(arrays, schema=ITEMS))
        out.other("state", GROUPS, 0, 0, body)
