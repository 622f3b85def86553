"""Tasks that each read everything for their share of the connections say together what one says."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from kafkawire.capture.tables import TABLES
from kafkawire.spark.facts import sum_up
from kafkawire.spark.finishing import Finish
from kafkawire.spark.options import parse
from kafkawire.spark.outputs import unpacked
from kafkawire.spark.packets import Placing
from kafkawire.spark.planning import make_plan
from kafkawire.spark.reading import IN_TWO_STEPS, Work, plainly

from .conftest import counted, rows_of


def apart(files: list[str], table: str, placing: Placing, split: str) -> list[dict[str, Any]]:
    """Rows of all buckets, without Spark."""
    options = parse({"table": table, "splitBytes": split})
    plan = make_plan(None, files, options)
    schema = TABLES[table].schema
    step = Work(plan, schema.names, options, plainly).gathering(placing, alone=True)
    told = [
        row
        for bucket in range(placing.total)
        for batch in step([pa.RecordBatch.from_pydict({"id": [bucket]})])
        for row in batch.to_pylist()
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
