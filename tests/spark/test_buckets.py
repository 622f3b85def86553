"""Buckets of connections have the rows of one process; sorting replaces the shuffle, so there is no
Spark.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkawire.spark.options import parse
from kafkawire.spark.plan.parts import reassemble_fragments
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.shuffle.packets import SCHEMA, Kind, Partitioner

from .conftest import TOGETHER, counted, counted_sets, finished, named, work_of


def shuffled(plan: Plan, partitioner: Partitioner) -> list[list[pa.RecordBatch]]:
    """The packets of each bucket, in order; fragments are reassembled."""
    order = [("kind", "ascending"), ("packet", "ascending")]
    found = [row for part in plan.parts for row in part.rows(partitioner)]
    table = pa.Table.from_batches(found, SCHEMA).sort_by(order)
    is_piece = pc.equal(table.column("kind"), int(Kind.FRAGMENTS))
    pieces = [(row["packet"], row["body"]) for row in table.filter(is_piece).to_pylist()]
    joined = [*reassemble_fragments(pieces, plan.sets, partitioner)]
    rest = [table.filter(pc.invert(is_piece)), pa.Table.from_batches(joined, SCHEMA)]
    every = pa.concat_tables(rest).sort_by(order)
    buckets = [
        every.filter(pc.equal(every.column("bucket"), at)) for at in range(partitioner.total)
    ]
    return [each.to_batches(max_chunksize=3) for each in buckets]


def decoded_by_bucket(
    files: list[str], tables: Sequence[str], partitioner: Partitioner, split: str
) -> dict[str, list[dict[str, Any]]]:
    """Rows of all buckets."""
    options = parse({"splitBytes": split})
    plan = make_plan(None, files, options)
    work = work_of(plan, tables, options)
    step = work.decode_buckets(partitioner)
    output = [
        row
        for each in shuffled(plan, partitioner)
        for batch in step(each)
        for row in batch.to_pylist()
    ]
    return finished(work, output)


@pytest.mark.parametrize("tables", TOGETHER, ids=named)
def test_captures(some_sets: dict[str, list[str]], tables: tuple[str, ...]) -> None:
    """Fragments, damage and files of several splits among them."""
    for name, files in some_sets.items():
        count, split = random.choice([1, 2, 3]), random.choice(["9k", "150k", "64m"])
        found = decoded_by_bucket(files, tables, Partitioner(count), split)
        for table, rows in found.items():
            assert counted(rows) == counted_sets([files], table), (table, name, count, split)
