"""A connection in one region only is decoded there; sorting replaces the shuffle, so there is no
Spark.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import chain, count, product
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.captures import HEADER, recorded, shifted
from kafkawire.spark import job, read, splitting
from kafkawire.spark.decode.work import PACKETS
from kafkawire.spark.options import parse
from kafkawire.spark.plan import planning
from kafkawire.spark.plan.opening import as_one
from kafkawire.spark.plan.parts import split_fragments
from kafkawire.spark.plan.planning import Plan, make_plan
from kafkawire.spark.plan.split_index import SplitIndex, index_split
from kafkawire.spark.shuffle.packets import Partitioner, hashes
from kafkawire.spark.splitting import inputs
from tests.capture.written import Scenario
from tests.conftest import FIXTURES

from .conftest import (
    TOGETHER,
    counted,
    counted_sets,
    finished,
    named,
    of_frame,
    rows_of,
    work_of,
)


def decoded(
    plan: Plan, tables: Sequence[str], partitioner: Partitioner
) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Rows of regions, and of the buckets of what leaves them; and how many stayed."""
    assert not plan.visits
    work = work_of(plan, tables, parse({}))
    numbers = pa.RecordBatch.from_pydict({"id": list(range(len(plan.regions)))})
    output = [
        row for batch in work.decode_regions(partitioner)([numbers]) for row in batch.to_pylist()
    ]
    stayed = sum(row["n"] for row in output if row["kind"] == "rows")
    shuffled = [row for row in output if row["kind"] == PACKETS]
    for bucket in range(partitioner.total):
        mine = [
            {"bucket": bucket, "kind": int(row["name"]), "packet": row["at"], "body": row["body"]}
            for row in sorted(shuffled, key=lambda row: (int(row["name"]), row["at"]))
            if row["n"] == bucket
        ]
        batches = [pa.RecordBatch.from_pylist([row]) for row in mine]
        output += [
            row for batch in work.decode_buckets(partitioner)(batches) for row in batch.to_pylist()
        ]
    return stayed, finished(work, output)


def decoded_rows(
    plan: Plan, table: str, partitioner: Partitioner
) -> tuple[int, list[dict[str, Any]]]:
    """The same for one table."""
    stayed, tables = decoded(plan, [table], partitioner)
    return stayed, tables[table]


@pytest.mark.parametrize("tables", TOGETHER, ids=named)
def test_captures(some_sets: dict[str, list[str]], tables: tuple[str, ...]) -> None:
    """Including fragments, damage and connections that span splits."""
    stayed = shuffled = 0
    splits = chain(["9k", "9k"], iter(lambda: random.choice(["9k", "40k", "150k"]), None))
    for (name, files), split in zip(some_sets.items(), splits, strict=False):
        plan = make_plan(None, files, parse({"splitBytes": split, "partitions": 2}))
        here, found = decoded(plan, tables, Partitioner(2))
        for table, rows in found.items():
            assert counted(rows) == counted_sets([files], table), (table, name, split)
        stayed += here
        shuffled += sum(map(len, found.values())) - here
    assert stayed
    assert shuffled


def copies(path: Path, count: int) -> None:
    """Write a capture of a recording's connections, one copy behind the other."""
    recording = recorded(FIXTURES / "captures" / "kcat-kf.pcap")
    with path.open("wb") as out:
        out.write(HEADER)
        for copy in range(count):
            for packet in recording:
                data = shifted(packet, copy)
                at = divmod(copy * 60_000_000 + packet.after_ns // 1000, 1_000_000)
                out.write(struct.pack("<IIII", *at, len(data), packet.original) + data)


def test_connections_in_one_region_are_not_shuffled(tmp_path: Path) -> None:
    copies(tmp_path / "copies.pcap", 40)
    files = [str(tmp_path / "copies.pcap")]
    plan = make_plan(None, files, parse({"splitBytes": "30k", "partitions": 2}))
    assert len(plan.regions) > 10
    assert all(region.shuffled is not None for region in plan.regions)
    stayed, rows = decoded_rows(plan, "exchanges", Partitioner(2))
    assert stayed > len(rows) * 3 // 4
    assert counted(rows) == counted(rows_of(files, "exchanges"))


def test_splits_are_indexed_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """By threads of the driver; the plan has the splits in order."""
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    options = parse({"splitBytes": "4k"})
    want = make_plan(None, [file], options)
    both, calls = Barrier(2), count()

    def index(one: tuple[splitting.Split, int]) -> SplitIndex:
        if next(calls) < 2:
            both.wait(10)  # fails where one is indexed after the other
        return index_split(one)

    monkeypatch.setattr(planning, "index_split", index)
    monkeypatch.setattr(planning, "core_count", lambda _: 2)
    found = make_plan(None, [file], options)
    assert [*found.parts] == [*want.parts]
    assert next(calls) == len(want.parts) > 2


def test_the_same_endpoints_in_another_region_are_shuffled(tmp_path: Path) -> None:
    """A reused port is another connection, which depends on the first one."""
    once, twice = tmp_path / "once.pcap", tmp_path / "twice.pcap"
    copies(once, 1)
    data = once.read_bytes()
    twice.write_bytes(data + data[len(HEADER) :])
    plan = make_plan(
        None, [str(twice)], parse({"splitBytes": str(len(data) // 2), "partitions": 2})
    )
    assert not make_plan(None, [str(once)], parse({})).shuffles
    assert len(plan.regions) > 1
    stayed, rows = decoded_rows(plan, "connections", Partitioner(2))
    assert stayed == 0
    assert counted(rows) == counted(rows_of([str(twice)], "connections"))


@pytest.mark.parametrize("split", ["10m", "200k", "20k"])
def test_damage_in_the_middle_of_a_file(tmp_path: Path, split: str) -> None:
    """It is reported at the last packet of the file, however far away."""
    damaged = tmp_path / "damaged.pcap"
    copies(damaged, 20)
    data = bytearray(damaged.read_bytes())
    for at, size in ((len(data) // 2, 400), (len(data) // 5, 100)):
        data[at : at + size] = b"\xff" * size
    damaged.write_bytes(data)
    plan = make_plan(None, [str(damaged)], parse({"splitBytes": split, "partitions": 2}))
    _, rows = decoded_rows(plan, "problems", Partitioner(2))
    assert len([row for row in rows if row["kind"] == "unreadable"]) == 2
    assert counted(rows) == counted(rows_of([str(damaged)], "problems"))


def test_header_hashes_are_those_of_the_parser(sets: dict[str, list[str]]) -> None:
    """The index has the connections of all segments."""
    spoken = 0
    for files in sets.values():
        for file in inputs(files):
            seen = index_split((as_one(file), 3))
            ids = np.frombuffer(seen.ids, np.uint64)
            found: set[int] = set()
            for block in splitting.read(as_one(file)):
                segments, pieces, _ = split_fragments(block)
                found |= set(hashes(segments, 3).tolist())
                assert seen.fragments or not len(pieces)
            assert found <= set(ids.tolist()), file.name
            assert len(np.unique(ids)) == len(ids)
            spoken += len(found)
    assert spoken > 500


def test_the_name_stated_first_wins(spark: SparkSession, tmp_path: Path) -> None:
    """The connection that is seen first names a topic last, and otherwise, within what is read at
    once; its task must not think that it was first.
    """
    scenario = Scenario()
    named = {(0, 150): "late", (1, 100): "early"}
    for number in range(200):
        for connection in (0, 1):
            topic = {**TOPIC, "errorCode": 0, "name": named.get((connection, number))}
            topics = [topic] if topic["name"] else []
            scenario.request("Metadata", 12, connection, topics=[])
            scenario.respond("Metadata", 12, connection, topics=topics, **METADATA)
    scenario.request("Fetch", 13, 1, **FETCH)
    files = [str(scenario.save(tmp_path / "names.pcap"))]
    want = rows_of(files, "exchanges")
    assert want[-1]["topics"] == ["early"]
    for partitions in (None, 1, 3, 4, 5):
        frame = read(spark, files, splitBytes="10k", partitions=partitions)
        assert counted(of_frame(frame)) == counted(want)
    moved, visited = parse({"splitBytes": "10k", "partitions": "3"}), parse({"splitBytes": "10k"})
    assert make_plan(spark, files, visited).first_packets is not None  # files are written at once
    both = (["exchanges", "partitions"], ["exchanges", "messages"])
    for number, (options, tables) in enumerate(product((moved, visited), both)):
        output = tmp_path / f"tables-{number}"
        job.run(spark, files, str(output), tables, options)
        for table in tables:
            frame = spark.read.parquet(str(output / table)).drop("date", "api")
            assert counted(of_frame(frame)) == counted(rows_of(files, table))


METADATA = {"brokers": [], "controllerId": 0}
TOPIC = {"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": []}
ASKED = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}
FETCH = {
    "maxWaitMs": 0, "minBytes": 0, "maxBytes": 1, "isolationLevel": 0, "sessionId": 0,
    "sessionEpoch": -1, "topics": [{**TOPIC, "partitions": [ASKED]}], "forgottenTopicsData": [],
}  # fmt: skip
