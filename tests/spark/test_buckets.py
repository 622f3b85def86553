"""Buckets of connections say together what one process says; without Spark: what a shuffle does,
sorting does.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.packets import SCHEMA, Kind, Placing
from kafkawire.spark.decode.work import IN_TWO_STEPS, Work
from kafkawire.spark.options import parse
from kafkawire.spark.plan.facts import sum_up
from kafkawire.spark.plan.parts import join_pieces
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.write.finishing import Finish
from kafkawire.spark.write.outputs import unpacked

from .conftest import counted, rows_of


def moved(plan: Plan, placing: Placing) -> list[list[pa.RecordBatch]]:
    """The packets of each bucket, in order; fragments of datagrams put together."""
    order = [("kind", "ascending"), ("packet", "ascending")]
    found = [row for part in plan.parts for row in part.rows(placing)]
    table = pa.Table.from_batches(found, SCHEMA).sort_by(order)
    is_piece = pc.equal(table.column("kind"), int(Kind.PIECES))
    pieces = [(row["packet"], row["body"]) for row in table.filter(is_piece).to_pylist()]
    joined = [*join_pieces(pieces, plan.sets, placing)]
    rest = [table.filter(pc.invert(is_piece)), pa.Table.from_batches(joined, SCHEMA)]
    every = pa.concat_tables(rest).sort_by(order)
    buckets = [every.filter(pc.equal(every.column("bucket"), at)) for at in range(placing.total)]
    return [each.to_batches(max_chunksize=3) for each in buckets]


def apart(files: list[str], table: str, placing: Placing, split: str) -> list[dict[str, Any]]:
    """Rows of all buckets."""
    options = parse({"table": table, "splitBytes": split})
    plan = make_plan(None, files, options)
    schema = TABLES[table].schema
    step = Work(plan, schema.names, options).gathering(placing)
    told = [
        row for each in moved(plan, placing) for batch in step(each) for row in batch.to_pylist()
    ]
    facts = sum_up(row["body"] for row in told if row["kind"] == "facts")
    finish = Finish(facts, plan.sets, frozenset(), schema)
    kept = [row["body"] for row in told if row["kind"] == "rows"]
    made = finish(batch for body in kept for batch in unpacked(body))
    return [row for batch in made for row in batch.to_pylist()]


@pytest.mark.parametrize("table", sorted({*TABLES} - {IN_TWO_STEPS}))
def test_every_capture(sets: dict[str, list[str]], table: str) -> None:
    """Fragments, damage and files of several splits among them."""
    for name, files in sets.items():
        count, split = random.choice([1, 2, 3]), random.choice(["9k", "150k", "64m"])
        found = apart(files, table, Placing(count), split)
        assert counted(found) == counted(rows_of(files, table)), (name, count, split)
