"""Buckets of connections have the rows of one process; sorting replaces the shuffle, so there is no
Spark.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.outputs import deserialise
from kafkawire.spark.decode.work import GROUP_EVENTS_TABLE, Work
from kafkawire.spark.options import parse
from kafkawire.spark.plan.facts import sum_up
from kafkawire.spark.plan.parts import reassemble_fragments
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.shuffle.packets import SCHEMA, Kind, Partitioner
from kafkawire.spark.write.finishing import Finish

from .conftest import counted, counted_sets


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
    files: list[str], table: str, partitioner: Partitioner, split: str
) -> list[dict[str, Any]]:
    """Rows of all buckets."""
    options = parse({"table": table, "splitBytes": split})
    plan = make_plan(None, files, options)
    schema = TABLES[table].schema
    step = Work(plan, schema.names, options).decode_buckets(partitioner)
    output = [
        row
        for each in shuffled(plan, partitioner)
        for batch in step(each)
        for row in batch.to_pylist()
    ]
    facts = sum_up(row["body"] for row in output if row["kind"] == "facts")
    finish = Finish(facts, plan.sets, None, schema)
    bodies = [row["body"] for row in output if row["kind"] == "rows"]
    made = finish(batch for body in bodies for batch in deserialise(body))
    return [row for batch in made for row in batch.to_pylist()]


@pytest.mark.parametrize("table", sorted({*TABLES} - {GROUP_EVENTS_TABLE}))
def test_captures(some_sets: dict[str, list[str]], table: str) -> None:
    """Fragments, damage and files of several splits among them."""
    for name, files in some_sets.items():
        count, split = random.choice([1, 2, 3]), random.choice(["9k", "150k", "64m"])
        found = decoded_by_bucket(files, table, Partitioner(count), split)
        assert counted(found) == counted_sets([files], table), (name, count, split)
