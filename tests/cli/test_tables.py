"""`kafkawire decode --table`: the same rows in every format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from kafkawire.capture import tables
from kafkawire_cli.main import app
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "captures" / "ck-848.pcap"


def run(*arguments: str, code: int = 0, stdin: bytes | None = None) -> str:
    result = CliRunner().invoke(app, ["decode", *arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result.output


def wanted(table: str) -> int:
    return sum(len(batch) for batch in tables.read(CAPTURE, table))


@pytest.mark.parametrize("table", tables.TABLES)
def test_json_lines_are_the_table(table: str) -> None:
    lines = run(str(CAPTURE), "--table", table).splitlines()
    names = tables.TABLES[table].schema.names
    assert len(lines) == wanted(table)
    assert all(list(json.loads(line)) == names for line in lines)


@pytest.mark.parametrize("table", tables.TABLES)
def test_a_parquet_file_is_the_table(table: str, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    assert run(str(CAPTURE), "--table", table, "-o", str(file)) == ""
    found = parquet.read_table(file)
    assert found.schema.equals(tables.TABLES[table].schema)
    assert found.to_pylist() == [
        row for batch in tables.read(CAPTURE, table) for row in batch.to_pylist()
    ]


def test_a_csv_file_is_the_table(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    run(str(CAPTURE), "--table", "exchanges", "-o", str(file))
    with file.open(encoding="utf-8", newline="") as text:
        first, *_ = found = list(csv.DictReader(text))
    assert len(found) == wanted("exchanges")
    assert first["time"] == "2026-11-21T04:09:57.671932Z"
    assert first["throttle_time_ms"] == "0"
    assert first["partitions_complete"] == ""
    assert json.loads(found[1]["topics"]) == ["t848"]


def test_a_capture_from_standard_input() -> None:
    lines = run("-", "--table", "connections", stdin=CAPTURE.read_bytes()).splitlines()
    assert len(lines) == wanted("connections")
    assert json.loads(lines[0])["first_file"] == "-"


REFUSED = [
    (["--table", "offsets"], "no table is called 'offsets'"),
    (["-o", "out.csv"], "needs --table"),
    (["--table", "records", "-o", "out.txt"], ".jsonl, .csv, .parquet"),
    (["--table", "records", "--filter", "api=Fetch"], "takes no --filter"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED)
def test_what_is_refused(arguments: list[str], says: str) -> None:
    said = " ".join(run(str(CAPTURE), *arguments, code=2).replace("│", " ").split())
    assert says in said


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    file = tmp_path / "text.pcap"
    file.write_text("no capture at all")
    assert "text.pcap" in run(str(file), "--table", "records", code=2)


def test_a_file_that_is_not_there() -> None:
    assert "nowhere.pcap" in run("nowhere.pcap", "--table", "records", code=2)
