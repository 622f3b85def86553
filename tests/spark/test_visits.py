"""Visited connections are decoded by one task, without a shuffle, however they are split."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.captures import recorded
from benchmarks.spark.skew import hot
from kafkawire.capture.tables import TABLES
from kafkawire.spark import job, read
from kafkawire.spark.decode.scratch import Scratch
from kafkawire.spark.decode.work import PACKETS, Step
from kafkawire.spark.errors import OutOfOrder
from kafkawire.spark.options import parse
from kafkawire.spark.plan import connection_index, split_index
from kafkawire.spark.plan.connection_index import Sharing
from kafkawire.spark.plan.opening import as_one
from kafkawire.spark.plan.parts import Part, Visit
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.plan.split_index import first_packets, index_split
from kafkawire.spark.plan.visited import column
from kafkawire.spark.reading import decode
from kafkawire.spark.shuffle.packets import Kind, hashes, is_among, segments_in
from kafkawire.spark.splitting import inputs
from kafkawire.spark.write import shared_directory as shared
from tests.capture.dialogue import hello, packets
from tests.capture.wire import pcap
from tests.conftest import FIXTURES

from .conftest import (
    SPANNING,
    TOGETHER,
    counted,
    counted_sets,
    directory_in,
    finished,
    named,
    of_frame,
    rows_of,
    rows_written,
    some,
    work_of,
)


def ran(step: Step, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for made in step([batch]) for row in made.to_pylist()]


def numbered(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(range(count))})


def decoded(plan: Plan, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Rows of visits, their chunks and regions, and of what moves all the same; without Spark."""
    work, partitioner = work_of(plan, tables, parse({})), plan.partitioner(3)
    output = ran(work.decode_visits(), numbered(len(plan.visits)))
    for row in [row for row in output if row["kind"] == "chunk"]:
        output += ran(work.decode_chunks(), pa.RecordBatch.from_pylist([row]))
    assert not any(row["kind"] == PACKETS for row in output)
    read = ran(work.decode_regions(partitioner), numbered(len(plan.regions)))
    shuffled = [row for row in read if row["kind"] == PACKETS]
    for bucket in range(partitioner.total):
        rows = [
            {"bucket": bucket, "kind": int(row["name"]), "packet": row["at"], "body": row["body"]}
            for row in sorted(shuffled, key=lambda row: (int(row["name"]), row["at"]))
            if row["n"] == bucket
        ]
        batches = [pa.RecordBatch.from_pylist([row]) for row in rows]
        output += [
            row for made in work.decode_buckets(partitioner)(batches) for row in made.to_pylist()
        ]
        for row in rows:
            if row["kind"] == Kind.SEGMENTS:
                found = hashes(segments_in(row["body"]), 0)
                assert not is_among(plan.visited, found).any()
    return finished(work, output + read)


@pytest.mark.parametrize("large", [1, 1 << 40])
@pytest.mark.parametrize("tables", TOGETHER, ids=named)
def test_captures(
    some_sets: dict[str, list[str]],
    tables: tuple[str, ...],
    large: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One visit for each connection, cut or not; and one for all."""
    monkeypatch.setattr(Sharing, "large", lambda *_: large)
    limits = cycle(random.sample([0, 1 << 40], 2))  # both occur
    monkeypatch.setattr(Sharing, "too_large", lambda *_: next(limits))
    monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1 << 40)
    visits = chunks = 0
    for name, files in some_sets.items():
        # the set that spans splits is visited, as is the large one: at least two visits
        split = "9k" if Path(name).name == SPANNING else random.choice(["9k", "40k", "150k"])
        plan = make_plan(None, files, parse({"splitBytes": split}))
        for table, rows in decoded(plan, tables).items():
            assert counted(rows) == counted_sets([files], table), (table, name, split)
        visits += len(plan.visits)
        chunks += sum(visit.cut for visit in plan.visits)
    assert visits > 0
    assert chunks


@pytest.fixture(scope="module")
def half_on_one(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Half of the bytes on one connection, in files whose names are in another order."""
    folder = tmp_path_factory.mktemp("half")
    names = ("ck-848.pcap", "kcat-kf.pcap")
    header, *pieces = hot([recorded(FIXTURES / "captures" / name) for name in names], 1_500_000)
    files = []
    for at, name in enumerate(("b.pcap", "c.pcap", "a.pcap")):
        mine = pieces[at * len(pieces) // 3 : (at + 1) * len(pieces) // 3]
        (folder / name).write_bytes(b"".join([header, *mine]))
        files.append(str(folder / name))
    return files


@pytest.mark.parametrize("table", ["connections", "exchanges", "group_events"])
def test_half_of_the_bytes_on_one_connection(
    spark: SparkSession, half_on_one: list[str], table: str, tmp_path: Path
) -> None:
    """It is decoded once, by one task that makes its rows; the other core has the rest."""
    files = random.sample(half_on_one, 3)
    options = parse({"table": table, "chunkBytes": "20k", "splitBytes": "100k", "partitions": 6})
    plan = make_plan(spark, files, options)
    assert [len(visit.ids) for visit in plan.visits] == [1]
    assert len(plan.visits[0].parts) == len(plan.parts) > 12
    found = decode(spark, plan, options)
    assert found.facts.sums["chunks"] == 0
    assert counted(of_frame(found.frame)) == counted(rows_of(files, table))
    found.release()
    whole = job.run(spark, files, str(tmp_path), [table], options)
    assert whole["payload"]["unaccounted"] == 0


def test_spanning_connections_are_visited(spark: SparkSession, sets: dict[str, list[str]]) -> None:
    """One task for each core with about the same bytes; nothing is shuffled."""
    (files,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    plan = make_plan(spark, files, parse({"splitBytes": "20k"}))
    assert len(plan.visits) == 2
    assert not plan.shuffles
    assert not plan.regions
    for table in ("exchanges", "group_events"):
        frame = read(spark, random.sample(files, len(files)), table, splitBytes="20k")
        assert counted(of_frame(frame)) == counted(rows_of(files, table))


@pytest.mark.parametrize("most", [0, 1 << 17])
@pytest.mark.parametrize("truncated", [False, True])
def test_visits_take_the_connections_of_one_region(
    sets: dict[str, list[str]],
    most: int,
    truncated: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then regions are only read for problems of files; unless there are too many connections."""
    monkeypatch.setattr(connection_index, "MAX_CONNECTIONS", most)
    (found,) = [files for name, files in sets.items() if name.endswith("mixed-a--rot")]
    files = [str(shutil.copy(file, tmp_path)) for file in found]
    for file in files[: len(files) * truncated]:
        os.truncate(file, os.path.getsize(file) - 1)
    plan = make_plan(None, files, parse({"splitBytes": "20k"}))
    assert len(plan.visits) == 1
    assert len(plan.regions) == len(files) * truncated if most else len(plan.regions) > len(files)
    assert plan.decodes_in_place == bool(plan.regions)
    for table in ("connections", "exchanges", "problems"):
        (rows,) = decoded(plan, (table,)).values()
        assert counted(rows) == counted_sets([files], table)


def test_small_connections_are_shuffled(
    half_on_one: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all splits for a connection with few bytes in each would cost more."""
    options = parse({"chunkBytes": "20k", "splitBytes": "100k", "partitions": 6})
    assert make_plan(None, half_on_one, options).visits
    monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1)
    plan = make_plan(None, half_on_one, options)
    assert not plan.visits
    assert len(plan.partitioner(6).hot) == 1
    assert plan.shuffles


def test_visits_can_be_repeated(half_on_one: list[str], tmp_path: Path) -> None:
    """Spark repeats them when a worker is lost, whose spill files stay unused."""
    options = parse({"chunkBytes": "20k", "splitBytes": "100k"})
    plan = make_plan(None, half_on_one, options)
    scratch = Scratch(str(tmp_path))
    step = replace(work_of(plan, ["exchanges"], options), scratch=scratch).decode_visits()
    lost = step([numbered(len(plan.visits))])
    next(lost)
    again, other = (ran(step, numbered(len(plan.visits))) for _ in range(2))
    assert [(row["kind"], row["n"]) for row in again] == [(row["kind"], row["n"]) for row in other]
    (files, facts), (other_files, other_facts) = (
        [[row["body"] for row in rows if row["kind"] == kind] for kind in ("rows", "facts")]
        for rows in (again, other)
    )
    assert facts == other_facts
    assert files
    assert not {*files} & {*other_files}


def test_the_order_is_asserted(half_on_one: list[str]) -> None:
    options = parse({"chunkBytes": "20k", "splitBytes": "100k"})
    visit, *_ = make_plan(None, half_on_one, options).visits
    packets = np.concatenate([column(found, "packet") for found in visit.segments()])
    assert len(packets) > 1000
    with pytest.raises(OutOfOrder):
        list(Visit(visit.ids, visit.parts[::-1], cut=False).segments())


@pytest.mark.parametrize("right", [True, False])
def test_visits_write_files_at_once(
    spark: SparkSession,
    sets: dict[str, list[str]],
    right: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Except rows with unknown topic ids; all again, if first packets were not right."""
    monkeypatch.setattr(Sharing, "large", lambda *_: 1)
    monkeypatch.setattr(Sharing, "too_large", lambda *_: 1 << 40)
    monkeypatch.setattr(connection_index, "MAX_READ_RATIO", 1 << 40)
    options = parse({"splitBytes": "30k"})
    schemas = {name: table.schema for name, table in TABLES.items()}
    early = Counter[str]()
    for name, files in some(sets, 15 if right else 60).items():
        plan = make_plan(None, files, options)
        first = plan.first_packets
        if first is None:
            continue
        if not right:
            plan = replace(plan, first_packets=first[1:])
        scratch, directory = (
            Scratch(str(tmp_path / "rows")),
            partial(directory_in, tmp_path / Path(name).name),
        )
        found = shared.decode(
            spark, plan, schemas, options, plan.partitioner(2), scratch.make(), directory
        )
        for table, rows in found.items():
            written = rows_written(rows, directory(table, rows.finish))
            assert written == counted_sets([files], table), (table, name)
            early[table] += len(rows.written)
        assert rows.facts.firsts.tolist() == first.tolist()
        scratch.remove()
    assert (early["exchanges"] > 0) == (early["records"] > 0) == right


def test_a_connection_that_is_opened_again(tmp_path: Path) -> None:
    """Its number is known only when it is reassembled; a repeated SYN is treated likewise."""
    once, again = hello(), [sent._replace(isns=(7, 8)) for sent in hello()]
    for story, known in ((once, True), (once + again, False), (once[:1] + once, False)):
        file = tmp_path / "capture.pcap"
        file.write_bytes(pcap(packets(story)))
        (found,) = (as_one(each) for each in inputs([str(file)]))
        proven = replace(found, first=1)
        first = first_packets([Part(0, 0, proven)], [index_split((proven, 0))])
        assert (first is not None) == known
        assert first is None or first.tolist() == [1]


@pytest.mark.parametrize("limit", ["MAX_CONNECTIONS", "MAX_ENTRIES"])
def test_first_packets_of_few_connections_only(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (split,) = (as_one(each) for each in inputs([str(FIXTURES / "captures" / "kcat-kf.pcap")]))
    parts, indexes = [Part(0, 0, replace(split, first=1))], [index_split((split, 0))]
    for most, known in ((len(indexes[0].hashes), True), (len(indexes[0].hashes) - 1, False)):
        monkeypatch.setattr(split_index, limit, most)
        assert (first_packets(parts, indexes) is not None) == known


def test_a_connection_that_is_opened_again_in_a_later_split() -> None:
    (split,) = (as_one(each) for each in inputs([str(FIXTURES / "captures" / "kcat-kf.pcap")]))
    parts = [Part(0, 0, replace(split, first=first)) for first in (1, 9999)]
    index = index_split((split, 0))
    assert index.begin_with_syn.count(b"\1") > 0
    alone = first_packets(parts[:1], [index])
    assert alone is not None
    assert len(alone) == len(index.hashes)
    assert first_packets(parts, [index, index]) is None
    without = index._replace(begin_with_syn=bytes(len(index.begin_with_syn)))
    both = first_packets(parts, [index, without])
    assert both is not None
    assert both.tolist() == alone.tolist()
