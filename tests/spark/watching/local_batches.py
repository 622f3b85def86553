"""The batches of a watch without Spark: sorting replaces the shuffle."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.groups import ITEMS
from kafkawire.spark.decode.outputs import deserialise
from kafkawire.spark.options import Options, parse
from kafkawire.spark.plan.facts import sum_up
from kafkawire.spark.plan.planning import make_plan
from kafkawire.spark.shuffle.packets import (
    SCHEMA,
    Kind,
    Partitioner,
    segment_rows,
    segments_in,
    take,
)
from kafkawire.spark.watch.checkpoint import state_rows
from kafkawire.spark.watch.connections import BatchSettings
from kafkawire.spark.watch.groups import group_event_batches
from kafkawire.spark.watch.state import BatchFacts, decode_batch
from kafkawire.spark.watch.writing import ConnectionNumbers, TableFinisher

ALL: Final = Partitioner(1)
IN_ORDER: Final = [("kind", "ascending"), ("packet", "ascending")]
BY_GROUP: Final = [("group_id", "ascending"), ("at", "ascending"), ("n", "ascending")]


@dataclass
class DecodedBatches:
    """Rows of all batches, not finished yet; given_up: number of connections."""

    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=lambda: defaultdict(list))
    opened: list[int] = field(default_factory=list)
    facts: list[bytes] = field(default_factory=list)
    names: tuple[str, ...] = ()
    given_up: int = 0
    most: int = 0

    def finished(self, table: str, topics: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """The rows of a table; names may have been learnt in a later batch."""
        named = {id: name for (_, id), name in sum_up(self.facts).names.items()}
        known = ConnectionNumbers({first: at for at, first in enumerate(self.opened)}, named)
        finish = TableFinisher(table, known, len(self.names), Options(topics=topics))
        return [row for each in self.rows[table] for row in finish.batch(each).to_pylist()]


def packets(files: Sequence[str], options: Options) -> tuple[tuple[str, ...], pa.Table]:
    """The packets of a set, a row each, and the names of its files in order."""
    plan = make_plan(None, files, options)
    rows = [each for part in plan.parts for batch in part.rows(ALL) for each in one_by_one(batch)]
    return tuple(plan.names), pa.Table.from_batches(rows, SCHEMA).sort_by("packet")


def one_by_one(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a row of segments into as many rows."""
    if batch.column("kind")[0].as_py() != Kind.SEGMENTS:
        yield batch
        return
    segments = segments_in(batch.column("body")[0].as_py())
    for at in range(len(segments)):
        yield from segment_rows(take(segments, slice(at, at + 1)), 0, ALL)


def decode_batches(
    names: tuple[str, ...],
    batches: Iterable[pa.Table],
    *,
    tables: Sequence[str] = tuple(TABLES),
    options: Options | None = None,
    state_bytes: int = 1 << 24,
    idle_ns: int = 1 << 62,
    size: int = 1000,
) -> DecodedBatches:
    """Decode batch after batch; a last one, without packets, closes all connections."""
    made = DecodedBatches(names=names)
    states: list[pa.RecordBatch] = []
    groups: list[pa.RecordBatch] = []
    newest = NO_TIME
    for batch in [*batches, None]:
        silent = NO_TIME if newest == NO_TIME else newest - idle_ns
        settings = BatchSettings(
            tuple(tables), options or parse({}), names, silent, state_bytes, closing=batch is None
        )
        rows_of_states = [row for each in states for row in state_rows(ALL, each)]
        state_table = pa.Table.from_batches(rows_of_states, SCHEMA)
        rows = state_table if batch is None else pa.concat_tables([state_table, batch])
        found = list(decode_batch(rows.sort_by(IN_ORDER).to_batches(max_chunksize=size), settings))
        facts = [BatchFacts(*pickle.loads(row["body"])) for row in of_kind(found, "facts")]
        made.opened += sorted(first for one in facts for first in one.opened)
        made.facts += [one.facts for one in facts]
        made.given_up += sum(one.given_up for one in facts)
        newest = max([newest, *(one.newest_ns for one in facts)])
        states = unpack(of_kind(found, "state"))
        items = [(row["name"], row["at"], row["n"], row["body"]) for row in of_kind(found, "item")]
        columns = [list(column) for column in zip(*items, strict=True)] or [[], [], [], []]
        fresh = pa.Table.from_arrays(
            [pa.array(values, f.type) for values, f in zip(columns, ITEMS, strict=True)],
            schema=ITEMS,
        )
        before = pa.Table.from_batches(groups, ITEMS)
        of_groups = pa.concat_tables([fresh, before]).sort_by(BY_GROUP)
        also = list(group_event_batches(of_groups.to_batches(), settings))
        groups = unpack(of_kind(also, "state"))
        made.most = max(made.most, sum(each.nbytes for each in states))
        for row in [*of_kind(found, "rows"), *of_kind(also, "rows")]:
            made.rows[row["name"]] += deserialise(row["body"])
    assert not states
    assert not groups
    return made


def of_kind(batches: Iterable[pa.RecordBatch], kind: str) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist() if row["kind"] == kind]


def unpack(rows: Iterable[dict[str, Any]]) -> list[pa.RecordBatch]:
    return [each for row in rows for each in deserialise(row["body"])]
