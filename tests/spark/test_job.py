"""The job: Parquet tables, a manifest that accounts for all bytes, a rerun that replaces."""

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
from kafkawire.spark.passes import passes
from kafkawire.spark.write import shared_directory as shared
from kafkawire.spark.write.output_directory import MANIFEST
from kafkawire_cli.main import app
from tests.capture import wire
from tests.conftest import FIXTURES

from .conftest import counted, of_frame, rows_of

TABLES = ["exchanges", "connections", "group_events"]


def test_tables_and_their_manifest(spark: SparkSession, tmp_path: Path) -> None:
    files = sorted(map(str, (FIXTURES / "captures").glob("kcat-kf--*.pcap*")))
    assert len(files) > 2
    messages: list[str] = []
    options = parse({"sets": "file", "splitBytes": "9k"})
    for _ in range(2):
        manifest = job.run(spark, files, str(tmp_path), TABLES, options, messages.append)
        assert json.loads((tmp_path / MANIFEST).read_text()) == manifest
        for table in TABLES:
            want = [row for file in files for row in rows_of([file], table)]
            frame = spark.read.parquet(str(tmp_path / table))
            without_partitions = (
                frame.drop("date", "api") if table == "exchanges" else frame.drop("date")
            )
            assert counted(of_frame(without_partitions)) == counted(want)
            assert manifest["tables"][table] == {"rows": len(want)}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*TABLES, MANIFEST])
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
    assert any("exchanges" in line and "rows" in line for line in messages)


def test_tables_are_made_in_one_pass() -> None:
    """A table with other rows or values than the capture's has a pass of its own."""
    every = ["exchanges", "messages", "records", "connections"]
    assert passes(every, parse({}), cuts=False) == [every]
    assert passes(every, parse({"where": "client ~ '1*'"}), cuts=False) == [every]
    rows, others = ["exchanges", "messages", "records"], ["connections"]
    assert passes(every, parse({}), cuts=True) == [rows, others]
    assert passes(["connections", "exchanges"], parse({}), cuts=True) == [
        ["connections", "exchanges"]
    ]
    redacted = [["exchanges", "connections"], ["messages"], ["records"]]
    assert passes(every, parse({"redact": "true"}), cuts=False) == redacted
    alone = [["connections"], ["exchanges"]]
    assert passes(["connections", "exchanges"], parse({"startTs": "1"}), cuts=False) == alone


def test_tables_with_filters(spark: SparkSession, tmp_path: Path) -> None:
    """In one pass or several, the rows are those of one process."""
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    where = "connection > 1 and client_address == 127.0.0.1"
    tables = ["messages", "exchanges", "records", "partitions"]
    for given in ({"where": where}, {"where": where, "redact": "true"}):
        job.run(spark, [file], str(tmp_path), tables, parse(given))
        for table in tables:
            want = rows_of([file], table, where=where)
            assert want
            frame = spark.read.parquet(str(tmp_path / table)).drop("date", "api")
            if "redact" in given and table in ("messages", "records"):
                assert frame.count() == len(want)
            else:
                assert counted(of_frame(frame)) == counted(want)


def test_a_table_is_partitioned_by_date_and_api(spark: SparkSession, tmp_path: Path) -> None:
    file = str(FIXTURES / "captures" / "kcat-kf.pcap")
    job.run(spark, [file], str(tmp_path), ["exchanges"], parse({}))
    folders = {path.parent.name for path in tmp_path.rglob("*.parquet")}
    assert "api=Fetch" in folders
    assert all(len(list(path.glob("*.parquet"))) == 1 for path in tmp_path.rglob("api=*"))


def test_the_command_and_the_script(tmp_path: Path) -> None:
    """In its own process, which starts the session."""
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    completed = subprocess.run(
        [
            sys.executable, "-m", "kafkawire_cli.main", "spark", file, "--output", str(tmp_path),
            "--master", "local[1]", "--table", "connections", "--option", "ports=1",
        ],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert f"connections: {len(rows_of([file], 'connections'))} rows" in completed.stderr
    assert json.loads((tmp_path / MANIFEST).read_text())["options"]["ports"] == [1]


def test_usage(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "kafkawire.spark.submit", "-o", str(tmp_path)]
    for more, messages in (
        (["x.pcap", "--table", "none"], "unknown table 'none'"),
        (["x.pcap", "--option", "splitBytes=none"], "option splitBytes"),
        (["x.pcap", "--option", "splitBytes"], "'splitBytes': expected NAME=VALUE"),
    ):
        completed = subprocess.run(
            [*run, *more], capture_output=True, text=True, timeout=300, check=False
        )
        assert completed.returncode == 2
        assert messages in completed.stderr


@pytest.fixture
def cut(tmp_path: Path) -> str:
    """A capture that ends inside a packet."""
    path = tmp_path / "cut.pcap"
    path.write_bytes((FIXTURES / "captures" / "ck-txn.pcap").read_bytes()[:-7])
    return str(path)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("table", ["exchanges", "records"])
def test_a_failed_job_prints_one_line(
    cut: str, tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command and by the script, in the running session."""
    arguments = [cut, "-o", str(tmp_path / "out"), "--option", f"table={table}"]
    assert submit.main(arguments) == 0
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert set(manifest["tables"]) == {table}
    capsys.readouterr()
    arguments += ["--option", "failOnError=true"]
    assert submit.main(arguments) == 2
    *_, line = capsys.readouterr().err.splitlines()
    messages = f"{cut}: the file ends 75 bytes into a packet (at byte 10493)"
    assert line == f"kafkawire-spark: {messages}"
    ran = CliRunner().invoke(app, ["spark", *arguments])
    assert ran.exit_code == 2
    assert f"kafkawire spark: {messages}" in ran.output
    assert "Traceback" not in ran.output
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_an_unsupported_option_is_refused_before_anything_is_written(
    spark: SparkSession, cut: str, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    job.run(spark, [cut], str(output), ["problems"], parse({}))
    before = sorted(output.rglob("*"))
    with pytest.raises(BadOption, match="option topics: invalid value 'problems'"):
        job.run(spark, [cut], str(output), ["exchanges", "problems"], parse({"topics": "a"}))
    assert sorted(output.rglob("*")) == before


@pytest.mark.usefixtures("spark")
def test_brokers_by_name_and_invalid_ports(cut: str, tmp_path: Path) -> None:
    arguments = ["spark", cut, "-o", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, [*arguments, "--broker", "localhost:9092"])
    assert ran.exit_code == 0, ran.output
    completed = json.loads((tmp_path / "out" / MANIFEST).read_text())["options"]
    assert "127.0.0.1:9092" in completed["brokers"]
    assert CliRunner().invoke(app, [*arguments, "--port", "65536"]).exit_code == 2


def test_spill_files_are_distributed_in_order() -> None:
    """The rows of one large connection are written by several tasks."""
    files = [(str(at), rows) for at, rows in enumerate([50] * 40 + [1] * 30 + [0])]
    for count in (1, 2, 3, 7, 200):
        runs = shared.distribute(files, count)
        assert [name for run in runs for name in run] == [name for name, _ in files]
        sizes = [sum(files[int(name)][1] for name in run) for run in runs]
        assert len(runs) <= count
        assert max(sizes) <= sum(sizes) / count + 50
    assert shared.distribute([], 3) == []
    assert shared.distribute([("empty", 0)], 3) == [["empty"]]


def test_what_captures_lack_is_noted_as_by_the_command_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Not with a filter, nor by tables that show it."""
    blocks, _ = wire.read((FIXTURES / "captures" / "kcat-kf.pcap").read_bytes())
    whole = wire.packets_of(blocks)
    cut = [wire.Packet(each[:200], original=len(each)) for each in whole]
    file = str(tmp_path / "cut.pcap")
    Path(file).write_bytes(wire.pcap(cut))
    of_one = CliRunner().invoke(
        app, ["decode", file, "--table", "records", "-o", str(tmp_path / "t.csv")]
    )
    [note] = [line for line in of_one.stderr.splitlines() if "not whole" in line]

    def log_of(tables: list[str], **options: str) -> list[str]:
        lines: list[str] = []
        output = str(tmp_path / "-".join([*tables, *options]))
        job.run(spark, [file], output, tables, parse(options), lines.append)
        return [line for line in lines if "not whole" in line]

    [line] = log_of(["records", "exchanges"])
    assert line in note
    assert line.endswith("the tables lack what was in them")
    assert log_of(["connections", "problems"]) == []
    assert log_of(["records"], where="api == Fetch") == []
