"""The chunks of a very large connection have the rows of the connection."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.captures import recorded
from benchmarks.spark.skew import hot
from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.chunk_rows import ChunkContext
from kafkawire.spark.decode.chunks import CHUNKED, chunk_batches, cut
from kafkawire.spark.decode.decoding import (
    BucketContext,
    BucketTraffic,
    ProblemCollector,
    in_order,
    sorted_rows,
)
from kafkawire.spark.options import parse
from kafkawire.spark.plan.facts import Facts, sum_up
from kafkawire.spark.plan.planning import make_plan
from kafkawire.spark.reading import decode
from kafkawire.spark.shuffle.packets import Partitioner
from kafkawire.spark.write.finishing import Finish
from tests.capture.shuffled import shuffled, written
from tests.conftest import FIXTURES

from .conftest import counted, counted_sets, of_frame


def chunked(
    files: list[str], table: str, size: int, beside: Iterable[str]
) -> tuple[int, list[dict[str, Any]]]:
    """Rows made from chunks, without Spark; and the number of chunks. beside: also made."""
    tables = {table, *beside}
    options = parse({"table": table})
    plan = make_plan(None, files, options)
    packets = [row for part in plan.parts for row in part.rows(Partitioner(1))]
    if not packets:
        return 0, []
    ordered = pa.Table.from_batches(packets).sort_by(
        [("kind", "ascending"), ("packet", "ascending")]
    )
    facts = Facts()
    notices = ProblemCollector(facts)
    segments = in_order(sorted_rows(ordered.to_batches()), notices.take)
    traffic = BucketTraffic(segments, notices, plan.names, plan.sets, options)
    chunks = list(cut(BucketContext(traffic, plan.sets), tables, size))
    random.shuffle(chunks)
    finish = Finish(sum_up([facts.pack()]), plan.sets, None, TABLES[table].schema)
    found = []
    for chunk in chunks:
        context = ChunkContext(plan.names, plan.sets, Facts())
        made = (batch for name, batch in chunk_batches(chunk, context, tables) if name == table)
        found += [row for batch in finish(made) for row in batch.to_pylist()]
    return len(chunks), found


@pytest.mark.parametrize("table", sorted(CHUNKED))
def test_captures_cut_anywhere(some_sets: dict[str, list[str]], table: str) -> None:
    """Also between request and response, inside fetch sessions, before the end."""
    most = 0
    for name, files in some_sets.items():
        large = sum(map(os.path.getsize, files)) > 1 << 20
        size = random.choice([2_000, 20_000] if large else [1, 300, 5_000])
        beside = random.sample(sorted(CHUNKED), random.randrange(3))
        count, rows = chunked(files, table, size, beside)
        assert counted(rows) == counted_sets([files], table), (name, size)
        most = max(most, count)
    assert most > 20


@pytest.mark.parametrize("table", sorted(CHUNKED))
def test_responses_out_of_order(tmp_path: Path, table: str) -> None:
    """Requests that were overtaken are open requests of the next chunk."""
    for window in (9, 80):
        capture = tmp_path / f"shuffled-{window}.pcap"
        capture.write_bytes(written(shuffled(random.Random(window), 80, window)))
        for size in (1, 60, 400):
            count, rows = chunked([str(capture)], table, size, ["messages"])
            assert count > 5
            assert counted(rows) == counted_sets([[str(capture)]], table), size


@pytest.fixture(scope="module")
def most_on_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hot") / "hot.pcap"
    names = ("ck-848.pcap", "kcat-kf.pcap")
    recordings = [recorded(FIXTURES / "captures" / name) for name in names]
    path.write_bytes(b"".join(hot(recordings, 1_500_000, 4)))
    return path


@pytest.mark.parametrize(
    ("table", "more"), [*((table, {}) for table in TABLES), ("exchanges", {"startTs": "0"})]
)
def test_most_of_the_bytes_on_one_connection(
    spark: SparkSession, most_on_one: Path, table: str, more: dict[str, str]
) -> None:
    """`exchanges` is not cut: to make it costs less than that."""
    given = {"table": table, "chunkBytes": "20k", "splitBytes": "100k", "partitions": 6, **more}
    options = parse(given)
    plan = make_plan(spark, [str(most_on_one)], options)
    assert [visit.cut for visit in plan.visits] == [True]
    found = decode(spark, plan, options)
    cuts = table in CHUNKED and table != "exchanges"
    assert (found.facts.sums["chunks"] > 10) == cuts
    assert counted(of_frame(found.frame)) == counted_sets([[str(most_on_one)]], table)
    found.release()
