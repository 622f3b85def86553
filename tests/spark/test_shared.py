"""Tables decoded through a shared directory have the rows of a single process."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.chunks import CHUNKED
from kafkawire.spark.decode.outputs import read_file_batches
from kafkawire.spark.decode.work import GROUP_EVENTS_TABLE
from kafkawire.spark.options import parse
from kafkawire.spark.plan import connection_index
from kafkawire.spark.plan.connection_index import Sharing
from kafkawire.spark.plan.planning import make_plan
from kafkawire.spark.write import shared_directory as shared
from kafkawire.spark.write.shared_directory import SpilledTable

from .conftest import counted, rows_of, some

SHARED = sorted({*TABLES} - {GROUP_EVENTS_TABLE})


def decoded(
    spark: SparkSession, files: list[str], table: str, folder: Path, **options: str
) -> tuple[SpilledTable, Counter[str]]:
    """Decode a table there; give its rows, too, without numbers of connections filled in twice."""
    folder.mkdir()
    options_ = parse({"table": table, **options})
    plan = make_plan(spark, files, options_)
    partitioner = plan.partitioner(options_.partitions or 2)
    assert shared.supports(plan, options_, partitioner)
    table_files = shared.decode(spark, plan, options_, partitioner, str(folder))
    batches = (batch for name, _ in table_files.files for batch in read_file_batches(name))
    rows = [row for batch in table_files.finish(batches) for row in batch.to_pylist()]
    assert len(rows) == sum(count for _, count in table_files.files)
    return table_files, counted(rows)


@pytest.fixture(scope="module")
def whole(sets: dict[str, list[str]]) -> dict[str, list[str]]:
    """The sets whose datagrams come whole."""
    options = parse({})
    found = {
        name: files for name, files in sets.items() if not make_plan(None, files, options).fragments
    }
    assert len(found) > 50
    return found


@pytest.mark.parametrize("visited", [False, True])
@pytest.mark.parametrize("table", SHARED)
def test_captures(
    spark: SparkSession,
    whole: dict[str, list[str]],
    table: str,
    visited: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What several splits share moves, or each of it is visited, cut or not."""
    split = random.choice(["9k", "40k", "150k"])
    given = {"splitBytes": split, "sets": "directory", "chunkBytes": "5k"}
    if visited:
        monkeypatch.setattr(Sharing, "large", lambda *_: 1)
        monkeypatch.setattr(Sharing, "too_large", lambda *_: random.choice([0, 1 << 40]))
        monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1 << 40)
    else:
        given["partitions"] = "3"
    chosen = [*some(whole, 9).values()]
    files = [file for each in chosen for file in each]
    random.shuffle(files)
    table_files, rows = decoded(spark, files, table, tmp_path / "rows", **given)
    assert rows == counted(row for each in chosen for row in rows_of(each, table))
    assert (table_files.facts.sums["chunks"] > 0) == (visited and table in CHUNKED - {"exchanges"})
    table_files.release()
    assert not (tmp_path / "rows").exists()
