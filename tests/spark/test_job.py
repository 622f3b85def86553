"""The job: Parquet tables, a manifest whose bytes add up, and a rerun that replaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kafkawire.spark import job, shared
from kafkawire.spark.options import parse
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

TABLES = ["exchanges", "connections", "group_events"]


def test_tables_and_their_manifest(spark: SparkSession, tmp_path: Path) -> None:
    files = sorted(map(str, (FIXTURES / "captures").glob("kcat-kf--*.pcap*")))
    assert len(files) > 2
    said: list[str] = []
    options = parse({"sets": "file", "splitBytes": "9k"})
    for _ in range(2):
        manifest = job.run(spark, files, str(tmp_path), TABLES, options, said.append)
        assert json.loads((tmp_path / job.MANIFEST).read_text()) == manifest
        for table in TABLES:
            want = [row for file in files for row in rows_of([file], table)]
            frame = spark.read.parquet(str(tmp_path / table))
            kept = frame.drop("date", "api") if table == "exchanges" else frame.drop("date")
            assert counted(of_frame(kept)) == counted(want)
            assert manifest["tables"][table] == {"rows": len(want)}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*TABLES, job.MANIFEST])
    assert [one["name"] for one in manifest["inputs"]] == files
    payload = manifest["payload"]
    assert payload["unaccounted"] == 0
    assert payload["missing"] > 0
    assert (
        payload["captured"]
        == sum(
            row["request_bytes"] + row["response_bytes"] + row["other_bytes"]
            for file in files
            for row in rows_of([file], "connections")
        )
        + payload["conflicting"]
        + payload["repeated"]
    )
    assert any("exchanges" in line and "rows" in line for line in said)


def test_a_table_is_cut_by_date_and_api(spark: SparkSession, tmp_path: Path) -> None:
    file = str(FIXTURES / "captures" / "kcat-kf.pcap")
    job.run(spark, [file], str(tmp_path), ["exchanges"], parse({}))
    folders = {path.parent.name for path in tmp_path.rglob("*.parquet")}
    assert "api=Fetch" in folders
    assert all(len(list(path.glob("*.parquet"))) == 1 for path in tmp_path.rglob("api=*"))


def test_the_command_and_the_script(tmp_path: Path) -> None:
    """In a process of its own, as users run it: the session is built there."""
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    told = subprocess.run(
        [
            sys.executable, "-m", "kafkawire_cli.main", "spark", file, "--output", str(tmp_path),
            "--master", "local[1]", "--table", "connections", "--option", "ports=1",
        ],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert f"connections: {len(rows_of([file], 'connections'))} rows" in told.stderr
    assert json.loads((tmp_path / job.MANIFEST).read_text())["options"]["ports"] == [1]


def test_usage(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "kafkawire.spark.submit", "-o", str(tmp_path)]
    for more, said in (
        (["x.pcap", "--table", "none"], "there is no table 'none'"),
        (["x.pcap", "--option", "splitBytes=none"], "option splitBytes"),
        (["x.pcap", "--option", "splitBytes"], "'splitBytes' is no NAME=VALUE"),
    ):
        told = subprocess.run(
            [*run, *more], capture_output=True, text=True, timeout=300, check=False
        )
        assert told.returncode == 2
        assert said in told.stderr


def test_files_of_rows_are_dealt_out_in_stretches() -> None:
    """Whoever decoded them: one large connection's are written by several tasks."""
    files = [(str(at), rows) for at, rows in enumerate([50] * 40 + [1] * 30 + [0])]
    for count in (1, 2, 3, 7, 200):
        runs = shared.dealt(files, count)
        assert [name for run in runs for name in run] == [name for name, _ in files]
        sizes = [sum(files[int(name)][1] for name in run) for run in runs]
        assert len(runs) <= count
        assert max(sizes) <= sum(sizes) / count + 50
    assert shared.dealt([], 3) == []
    assert shared.dealt([("empty", 0)], 3) == [["empty"]]
