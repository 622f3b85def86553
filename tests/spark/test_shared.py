"""Tables decoded through a shared directory have the rows of a single process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.tables import TABLES
from kafkawire.spark import read, reading
from kafkawire.spark.decode.chunks import CHUNKED
from kafkawire.spark.decode.outputs import read_file_batches
from kafkawire.spark.decode.scratch import Scratch
from kafkawire.spark.options import parse
from kafkawire.spark.passes import decode_passes
from kafkawire.spark.plan import connection_index
from kafkawire.spark.plan.connection_index import Sharing
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.write import shared_directory as shared
from kafkawire.spark.write.shared_directory import SpilledTable
from tests.capture.wire import pcap
from tests.conftest import FIXTURES

from .conftest import counted, counted_sets, directory_in, of_frame, rows_of, rows_written, some
from .test_rows import fragmented


def decoded(
    spark: SparkSession, files: list[str], table: str, folder: Path, **options: str
) -> tuple[SpilledTable, Counter[str]]:
    """Decode a table there; give its rows, too, without numbers of connections filled in twice."""
    options_ = parse({"table": table, **options})
    plan = make_plan(spark, files, options_)
    partitioner = plan.partitioner(options_.partitions or 2)
    assert shared.supports(plan, partitioner)
    scratch = Scratch(str(folder)).make()
    schemas = {table: TABLES[table].schema}
    found = shared.decode(spark, plan, schemas, options_, partitioner, scratch, groups=3)
    table_files = found[table]
    batches = (batch for name, _ in table_files.files for batch in read_file_batches(scratch, name))
    rows = [row for batch in table_files.finish(batches) for row in batch.to_pylist()]
    assert len(rows) == sum(count for _, count in table_files.files)
    return table_files, counted(rows)


def some_cut() -> Iterator[int]:
    """Yield limits above which connections are cut: for the first, then for some at random."""
    yield 0
    while True:
        yield random.choice([0, 1 << 40])


def plan_of(files: list[str]) -> Plan:
    return make_plan(None, files, parse({}))


@pytest.fixture(scope="module")
def whole(sets: dict[str, list[str]]) -> dict[str, list[str]]:
    """The sets without IP fragments, with which nothing is visited."""
    found = {name: files for name, files in sets.items() if not plan_of(files).fragments}
    assert len(found) > 1
    return found


@pytest.mark.parametrize("visited", [False, True])
@pytest.mark.parametrize("table", sorted(TABLES))
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
        limits = some_cut()
        monkeypatch.setattr(Sharing, "too_large", lambda *_: next(limits))
        monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1 << 40)
    else:
        given["partitions"] = "3"
    chosen = [*some(whole, 9).values()]
    files = [file for each in chosen for file in each]
    random.shuffle(files)
    table_files, rows = decoded(spark, files, table, tmp_path / "rows", **given)
    assert rows == counted_sets(chosen, table)
    assert (table_files.facts.sums["chunks"] > 0) == (visited and table in CHUNKED - {"exchanges"})
    table_files.release()
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize("visited", [False, True])
def test_all_tables_together(
    spark: SparkSession,
    sets: dict[str, list[str]],
    visited: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every capture, fragments too, in one pass. In two if connections are cut into chunks: then
    some of them, since each connection is a task of its own, which reads many splits.
    """
    given = {"splitBytes": random.choice(["9k", "40k", "150k"]), "sets": "directory"}
    if visited:
        monkeypatch.setattr(Sharing, "large", lambda *_: 1)
        limits = some_cut()
        monkeypatch.setattr(Sharing, "too_large", lambda *_: next(limits))
        monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1 << 40)
        sets = some(
            {name: files for name, files in sets.items() if not plan_of(files).fragments}, 4
        )
    else:
        given["partitions"] = "3"
    options = parse(given)
    plan = make_plan(spark, [file for files in sets.values() for file in files], options)
    folders = [Scratch(str(tmp_path / str(number))) for number in range(2)]
    rest = iter(folders)
    made: set[str] = set()
    directory = partial(directory_in, tmp_path)
    passes = decode_passes(spark, plan, [*TABLES], options, lambda: next(rest).make(), directory)
    for together in passes:
        assert {*together} in ([{*TABLES}] if not visited else [CHUNKED, {*TABLES} - CHUNKED])
        made |= {*together}
        for table, found in together.items():
            rows = rows_written(found, directory(table, found.finish))
            assert rows == counted_sets(sets.values(), table), table
            assert (found.facts.sums["chunks"] > 0) == (visited and table in CHUNKED)
        for found in together.values():
            found.release()
    assert made == {*TABLES}
    assert not any(Path(folder.path).exists() for folder in folders)


@pytest.fixture(scope="module")
def fragments(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("fragments") / "fragments.pcap"
    file.write_bytes(pcap(fragmented(2), magic=0xA1B23C4D))
    return str(file)


@pytest.mark.parametrize("table", ["exchanges", "group_events", "problems"])
def test_fragments(spark: SparkSession, fragments: str, table: str, tmp_path: Path) -> None:
    """They are reassembled where their file is read, and go to the buckets of their connections."""
    files = [fragments, str(FIXTURES / "captures" / "ck-group-range.pcap")]
    given = {"splitBytes": "9k", "partitions": "3"}
    _, rows = decoded(spark, files, table, tmp_path / "rows", **given)
    assert rows == counted(rows_of(files, table))


def nothing_in_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if rows, packets or items go through frames of Spark."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("through Java")

    monkeypatch.setattr(reading, "decode", refuse)


@pytest.mark.parametrize("table", ["exchanges", "group_events"])
def test_a_local_master_reads_through_files(
    spark: SparkSession, fragments: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes the rows of a frame once, when it is used."""
    nothing_in_java(monkeypatch)
    files = [str(FIXTURES / "captures" / "ck-group-range.pcap"), fragments]
    frame = read(spark, files, table, splitBytes="20k")
    assert counted(of_frame(frame)) == counted(rows_of(files, table))
    assert frame.count() == frame.select(frame.columns[0]).count()


def test_a_given_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster, whose workers see nothing else."""
    nothing_in_java(monkeypatch)
    file = str(FIXTURES / "captures" / "ck-group-range.pcap")
    frame = read(spark, [file], "exchanges", columns=["api_name"], scratch=str(tmp_path / "all"))
    (made,) = (tmp_path / "all").iterdir()
    assert [path.suffix for path in made.iterdir()] == [".arrow"]
    assert frame.columns == ["api_name"]
    assert frame.count() == len(rows_of([file], "exchanges"))
