"""The job: Parquet tables, a manifest whose bytes add up, and a rerun that replaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kafkawire.spark import job, submit
from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse
from kafkawire.spark.write import shared_directory as shared
from kafkawire_cli.main import app
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


@pytest.fixture
def cut(tmp_path: Path) -> str:
    """A capture that ends inside a packet."""
    path = tmp_path / "cut.pcap"
    path.write_bytes((FIXTURES / "captures" / "ck-txn.pcap").read_bytes()[:-7])
    return str(path)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("table", ["exchanges", "records"])
def test_a_job_that_fails_says_of_what_in_a_line(
    cut: str, tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ways that users run it, in the session that there is."""
    asked = [cut, "-o", str(tmp_path / "out"), "--option", f"table={table}"]
    assert submit.main(asked) == 0
    manifest = json.loads((tmp_path / "out" / job.MANIFEST).read_text())
    assert set(manifest["tables"]) == {table}
    capsys.readouterr()
    asked += ["--option", "failOnError=true"]
    assert submit.main(asked) == 2
    *_, line = capsys.readouterr().err.splitlines()
    said = f"{cut}: the file ends 75 bytes into a packet (at byte 10493)"
    assert line == f"kafkawire-spark: {said}"
    ran = CliRunner().invoke(app, ["spark", *asked])
    assert ran.exit_code == 2
    assert f"kafkawire spark: {said}" in ran.output
    assert "Traceback" not in ran.output
    assert not (tmp_path / "out" / job.MANIFEST).exists()


def test_an_option_that_a_table_has_not_is_refused_before_anything_is_done(
    spark: SparkSession, cut: str, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    job.run(spark, [cut], str(output), ["problems"], parse({}))
    before = sorted(output.rglob("*"))
    with pytest.raises(BadOption, match="option topics: 'problems'"):
        job.run(spark, [cut], str(output), ["exchanges", "problems"], parse({"topics": "a"}))
    assert sorted(output.rglob("*")) == before


@pytest.mark.usefixtures("spark")
def test_a_broker_may_be_a_name_and_a_port_is_one(cut: str, tmp_path: Path) -> None:
    asked = ["spark", cut, "-o", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, [*asked, "--broker", "localhost:9092"])
    assert ran.exit_code == 0, ran.output
    told = json.loads((tmp_path / "out" / job.MANIFEST).read_text())["options"]
    assert "127.0.0.1:9092" in told["brokers"]
    assert CliRunner().invoke(app, [*asked, "--port", "65536"]).exit_code == 2


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
