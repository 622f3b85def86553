"""Files that arrive, are late or unfinished, or are listed by a stream: each message is in the
tables once.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkawire.spark.options import parse
from kafkawire.spark.watch import Finished, Mode, Watcher, WatchError, WatchOptions, watch
from tests.capture import wire
from tests.conftest import FIXTURES

from ..conftest import counted, rows_of
from .test_killed import rows
from .test_state import MIXED

TABLES = ("exchanges", "partitions", "connections", "group_events")


@dataclass
class Tap:
    """Writes a rotated set into a directory, a step each time the watch sleeps."""

    directory: Path
    steps: list[Callable[[], object]]
    ended: bool = False
    logged: list[str] = field(default_factory=list)

    def sleep(self, _: float) -> None:
        if self.steps:
            self.steps.pop(0)()
        else:
            self.ended = True

    def put(self, source: str, name: str = "", size: int | None = None) -> Callable[[], object]:
        """Write a file, or its first bytes."""

        def step() -> None:
            path = self.directory / (name or Path(source).name)
            path.write_bytes(Path(source).read_bytes()[:size])

        return step

    def then(self, *steps: Callable[[], object]) -> Callable[[], object]:
        return lambda: [step() for step in steps]

    def watch(self, spark: SparkSession, output: Path, rules: WatchOptions, **more: Any) -> None:
        self.ended = False
        watch(
            spark, self.directory, output, TABLES, parse({}), rules,
            clock=lambda: 0.0, sleep=self.sleep, stop=lambda: self.ended, log=self.logged.append,
            **more,
        )  # fmt: skip


def test_a_rotation(spark: SparkSession, sets: dict[str, list[str]], tmp_path: Path) -> None:
    """The newest file is not read; after a restart the remaining files are one batch."""
    (files,) = [files for name, files in sets.items() if name.endswith(MIXED)]
    directory, output = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    tap = Tap(directory, [])
    tap.steps = [
        tap.put(files[0], size=10_000),
        tap.then(tap.put(files[0]), tap.put(files[1])),
        tap.then(tap.put(files[2]), tap.put(files[3], size=50)),
    ]
    tap.watch(spark, output, WatchOptions())
    assert [line for line in tap.logged if " MB" in line] == [
        "batch 0: 1 file, 0.3 MB",
        "batch 1: 2 files, 0.9 MB",
    ]
    with pytest.raises(WatchError, match="writes the tables"):
        Watcher(spark, output, ["exchanges"], parse({}))
    for file in files[3:]:
        tap.put(file)()
    tap.watch(spark, output, WatchOptions(), mode=Mode.END)
    arrived = [str(directory / Path(file).name) for file in files]
    for table in TABLES:
        assert counted(rows(output / table)) == counted(rows_of(arrived, table)), table
    with Watcher(spark, output, TABLES, parse({})) as watcher:
        assert watcher.take([], closing=True) == []


def test_files_that_are_not_finished_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A run that takes nothing says why."""
    directory, output = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    tap = Tap(directory, [])
    tap.put(str(FIXTURES / "captures" / "kcat-kf.pcap"), "a1.pcap")()
    tap.watch(spark, output, WatchOptions(), mode=Mode.ONCE)
    assert tap.logged[0] == "no new files"
    assert tap.logged[1].startswith("1 file left for a later run")
    tap.logged.clear()
    tap.watch(spark, output, WatchOptions(), mode=Mode.END)
    assert not [line for line in tap.logged if "later run" in line or "no new" in line]


def test_what_captures_lack_is_noted_with_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    """As by the job; not by a batch that is whole."""
    directory, output = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    capture = FIXTURES / "captures" / "kcat-kf.pcap"
    blocks, _ = wire.read(capture.read_bytes())
    cut = [wire.Packet(each[:200], original=len(each)) for each in wire.packets_of(blocks)]
    tap = Tap(directory, [])
    tap.put(str(capture), "a.pcap")()
    (directory / "b.pcap").write_bytes(wire.pcap(cut))
    tap.watch(spark, output, WatchOptions(Finished.RENAMED), mode=Mode.END)
    lacking = [line for line in tap.logged if "not whole" in line]
    assert [line.partition(": ")[0] for line in lacking] == ["batch 0"]
    assert lacking[0].endswith("the tables lack what was in them")


def test_late_files_are_a_batch_of_their_own(
    spark: SparkSession, sets: dict[str, list[str]], tmp_path: Path
) -> None:
    """Files of one batch are sorted; files older than an earlier batch are late, and the commit
    says so.
    """
    (files,) = [files for name, files in sets.items() if name.endswith(MIXED)]
    directory, output = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    tap = Tap(directory, [])
    rules = WatchOptions(Finished.RENAMED)
    for source, name in ((files[2], "a.pcap"), (files[0], "z.pcap")):
        tap.put(source, name)()
    tap.watch(spark, output, rules, mode=Mode.ONCE)
    tap.put(files[1], "m.pcap")()
    tap.put(files[3], "n.pcap")()
    tap.put(files[4], "z.pcap")()  # one that was taken, with other content
    tap.watch(spark, output, rules, mode=Mode.END)
    commits = [
        json.loads(path.read_text())
        for path in sorted((output / "_watch" / "commits").glob("*.json"))
    ]
    assert [[Path(f["name"]).name for f in one["files"]] for one in commits] == [
        ["z.pcap", "a.pcap"],
        ["m.pcap"],
        ["n.pcap"],
    ]
    assert [one["late"] for one in commits] == [False, True, False]
    assert any("changed after it was read" in line for line in tap.logged)
    shutil.copy(files[0], directory / "z.pcap")
    arrived = [str(directory / name) for name in ("z.pcap", "a.pcap", "n.pcap")]
    late = [str(directory / "m.pcap")]
    numbers = [row["connection"] for row in rows(output / "connections")]
    assert sorted(numbers) == list(range(len(numbers)))
    for table in TABLES:
        found = map(without_number, rows(output / table, 0, 2))
        assert counted(found) == counted(map(without_number, rows_of(arrived, table))), table
        found = map(without_number, rows(output / table, 1))
        assert counted(found) == counted(map(without_number, rows_of(late, table))), table


def without_number(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "connection": None}


def test_a_stream_that_lists_the_files(
    spark: SparkSession, sets: dict[str, list[str]], tmp_path: Path
) -> None:
    """`readStream` and `foreachBatch`; its checkpoint is lost, and no file is taken twice."""
    directory, output = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    files = []
    (rotated,) = [files for name, files in sets.items() if name.endswith("kcat-kf--rot")]
    for at, source in enumerate(rotated):
        files.append(str(directory / Path(source).name))
        shutil.copy(source, files[-1])
        os.utime(files[-1], (at, at))
    for checkpoint in ("one", "two"):
        with Watcher(spark, output, TABLES, parse({})) as watcher:
            listed = (
                spark.readStream.format("binaryFile")
                .schema("path string, modificationTime timestamp, length long, content binary")
                .option("maxFilesPerTrigger", 1)
                .load(str(directory))
                .select("path")
            )
            query = (
                listed.writeStream.foreachBatch(watcher.take_frame)
                .option("checkpointLocation", str(tmp_path / checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            assert len(watcher.commit_log.commits) == len(files) == 2
    with Watcher(spark, output, TABLES, parse({})) as watcher:
        watcher.take([], closing=True)
    for table in TABLES:
        assert counted(rows(output / table)) == counted(rows_of(files, table)), table
