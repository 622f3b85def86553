"""`kafkawire decode --table`: the same rows in every format."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from kafkawire.capture import tables
from kafkawire.records.builder import BatchBuilder
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


@pytest.mark.parametrize("table", tables.TABLES)
def test_an_arrow_file_is_the_table(table: str, tmp_path: Path) -> None:
    file = tmp_path / "out.arrow"
    assert run(str(CAPTURE), "--table", table, "-o", str(file)) == ""
    with pa.memory_map(str(file)) as mapped:
        found = pa.ipc.open_file(mapped).read_all()
        assert found.schema.equals(tables.TABLES[table].schema)
        assert found.equals(pa.Table.from_batches(tables.read(CAPTURE, table), found.schema))


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


def rows_in(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    return found


def test_several_tables_have_a_file_each(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    names = ["exchanges", "records", "problems"]
    request = [each for name in names for each in ("--table", name)]
    assert run(str(CAPTURE), *request, "-o", str(folder)) == ""
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{n}.parquet" for n in names)
    for name in names:
        one = tmp_path / f"{name}.parquet"
        run(str(CAPTURE), "--table", name, "-o", str(one))
        assert rows_in(one) == rows_in(folder / f"{name}.parquet")
    run(str(CAPTURE), "--table", "connections", "-o", str(folder))  # it is there by now
    assert len(rows_in(folder / "connections.parquet")) == wanted("connections")


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".arrow"])
def test_several_tables_in_other_formats(tmp_path: Path, ending: str) -> None:
    request = ["--table", "exchanges", "--table", "records", "--table", "exchanges"]
    run(str(CAPTURE), *request, "-o", str(tmp_path / f"ck-{{table}}{ending}"))
    for name in ("exchanges", "records"):
        one = tmp_path / f"one{ending}"
        run(str(CAPTURE), "--table", name, "-o", str(one))
        assert one.read_bytes() == (tmp_path / f"ck-{name}{ending}").read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


def test_row_groups_hold_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(tables, "BATCH_ROWS", 7)
        run(str(CAPTURE), "--table", "exchanges", "-o", str(file))
    found = parquet.ParquetFile(file).metadata
    assert found.num_rows == wanted("exchanges") > 7
    assert found.num_row_groups == 1


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("options", "codec"),
    [([], "ZSTD")]
    + [(["--compression", name], name.upper()) for name in ("zstd", "snappy", "lz4")]
    + [(["--compression", "none"], "UNCOMPRESSED")],
)
def test_parquet_files_have_a_codec(
    options: list[str], codec: str, jobs: int, tmp_path: Path
) -> None:
    """Files of other codecs have the same rows; with two jobs, another process writes `records`."""
    names = [word for table in ("records", "exchanges") for word in ("--table", table)]
    run(str(CAPTURE), *names, *options, "--jobs", str(jobs), "-o", str(tmp_path))
    for table in ("records", "exchanges"):
        file = parquet.ParquetFile(tmp_path / f"{table}.parquet")
        assert file.metadata.row_group(0).column(0).compression == codec
        assert file.metadata.num_rows == wanted(table)


def test_numbers_and_times_have_statistics(tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    run(str(CAPTURE), "--table", "records", "-o", str(file))
    group = parquet.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    found = {column.path_in_schema for column in columns if column.is_stats_set}
    assert found >= {"packet", "time", "time_ns", "offset", "timestamp_ms", "partition"}
    assert found.isdisjoint({"file", "topic", "key", "value", "headers.list.element.key"})


def test_tables_import_no_more_than_they_need(tmp_path: Path) -> None:
    """Not pandas, which takes as long as 10 MB do; pyarrow imports it wherever it has to look
    at a list. Nor what pyarrow computes with, which it imports for a cast; nor numpy, of a quarter
    of the time of a small capture, nor the clients of object stores.
    """
    code = (
        "import sys; from kafkawire_cli.main import app\n"
        "names = 'pandas', 'numpy', 'pyarrow.compute', 'pyarrow._s3fs', 'pyarrow'\n"
        "try: app()\n"
        "finally: print(*(name in sys.modules for name in names))"
    )
    request = ["decode", str(CAPTURE), "--table", "exchanges", "--table", "records"]
    request += ["--table", "partitions"]
    ran = subprocess.run(
        [sys.executable, "-c", code, *request, "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert ran.stdout.split() == ["False", "False", "False", "False", "True"]


def shown_and_hidden(table: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of a table as they are, and with --redact."""
    capture = str(FIXTURES / "captures" / "kcat-kf.pcap")
    plain, hidden = (
        [json.loads(line) for line in run(capture, "--table", table, *more).splitlines()]
        for more in ((), ("--redact",))
    )
    return plain, hidden


def test_records_that_are_hidden() -> None:
    def digest(text: str) -> str:
        value = b64decode(text)
        left = f"sha256:{sha256(value).hexdigest()}, {len(value)} bytes"
        return b64encode(left.encode()).decode()

    plain, hidden = shown_and_hidden("records")
    assert len({row["value"] for row in plain}) > 5
    for row in plain:
        row["key"], row["value"] = digest(row["key"]), digest(row["value"])
        row["headers"] = [{**one, "value": digest(one["value"])} for one in row["headers"]]
    assert hidden == plain


def test_messages_whose_records_are_hidden() -> None:
    plain, hidden = shown_and_hidden("messages")
    field = r'"records":"([^"]*)"'
    assert sum(bool(re.search(field, row["body"] or "")) for row in plain) > 5
    for row in plain:
        row["body"] = re.sub(
            field, lambda m: f'"records":"(redacted, {len(m[1])} characters)"', row["body"]
        )
    assert hidden == plain


REFUSED = [
    (["--table", "records", "--table", "exchanges"], "required for several tables"),
    (["--table", "records", "--table", "exchanges", "-o", "out.csv"], "'out.csv' is one file"),
    (["--table", "records", "--table", "exchanges", "-o", "{table}.txt"], ".jsonl, .csv, .parquet"),
    (["--table", "offsets"], "unknown table 'offsets'"),
    (["--table", "lag"], "kafkawire sql has it: SELECT * FROM lag"),
    (["-o", "out.csv"], "only allowed with --table"),
    (["--table", "records", "-o", "out.txt"], ".jsonl, .csv, .parquet"),
    (["-o", "out.csv", "--format", "jsonl"], "Invalid value for --output: only allowed with"),
    (
        ["--table", "records", "--records", "-f", "jsonl"],
        "Invalid value for --format, --records: not allowed with --table",
    ),
    (["--table", "records", "--records"], "for --records: not allowed with --table"),
    (["--table", "records", "--filter", "group == g"], "table records has no group; tables that"),
    (["--table", "exchanges", "--filter", "api=Fetch"], "use =="),
    (["--compression", "zstd"], "for --compression: only allowed with --table"),
    (["--table", "records", "--compression", "zstd"], "only allowed with .parquet files"),
    (
        ["--table", "records", "-o", "out.arrow", "--compression", "none"],
        "for --compression: only allowed with .parquet files",
    ),
    (["--table", "records", "-o", "out.parquet", "--compression", "gzip"], "'gzip' is not one of"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED)
def test_invalid_uses_are_refused(arguments: list[str], says: str) -> None:
    message = " ".join(run(str(CAPTURE), *arguments, code=2).replace("│", " ").split())
    assert says in message


@pytest.mark.parametrize("name", ["new", "new/deep", "new.d", "v1.0/", "new/a-{table}.csv"])
def test_a_directory_that_does_not_exist_is_made(name: str, tmp_path: Path) -> None:
    tables = ("exchanges", "problems")
    options = [word for table in tables for word in ("--table", table)]
    run(str(CAPTURE), *options, "-o", f"{tmp_path}/{name}")
    made = {path.stem.removeprefix("a-") for path in tmp_path.rglob("*.*") if path.is_file()}
    assert made == set(tables)


@pytest.mark.parametrize("name", ["new", "new/a.csv"])
def test_a_directory_for_one_table_is_made(name: str, tmp_path: Path) -> None:
    run(str(CAPTURE), "--table", "exchanges", "-o", f"{tmp_path}/{name}")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_nothing_is_made_for_a_mistake(tmp_path: Path) -> None:
    run("nowhere.pcap", "--table", "records", "-o", f"{tmp_path}/new", code=2)
    run(str(CAPTURE), "--table", "record", "-o", f"{tmp_path}/new", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    message = run(str(CAPTURE), "--table", "records", "-o", f"{tmp_path}/file/new", code=2)
    assert "file" in message
    assert "Traceback" not in message


def test_a_file_that_is_not_a_capture(tmp_path: Path) -> None:
    file = tmp_path / "text.pcap"
    file.write_text("no capture at all")
    assert "text.pcap" in run(str(file), "--table", "records", code=2)


def test_a_file_that_is_not_there() -> None:
    assert "nowhere.pcap" in run("nowhere.pcap", "--table", "records", code=2)


def test_a_table_of_the_other_inputs_is_named_as_one(tmp_path: Path) -> None:
    made = tmp_path / "made.parquet"
    said = run(str(CAPTURE), "nowhere.pcap", "--table", "records", "-o", str(made), code=2)
    assert "the tables cover the other inputs" in said
    assert made.exists()
    assert "other inputs" not in run("nowhere.pcap", "--table", "records", code=2)


@pytest.mark.parametrize("command", ["decode", "log"])
def test_pandas_is_not_imported(command: str, tmp_path: Path) -> None:
    """It is installed here, for Spark; importing it takes a third of a second."""
    output = str(tmp_path / "x.parquet")
    if command == "decode":
        arguments = [command, str(CAPTURE), "--table", "partitions", "--output", output]
    else:
        segment = tmp_path / "00000000000000000000.log"
        builder = BatchBuilder()
        builder.append(b"key", b"value", 1)
        segment.write_bytes(builder.build())
        arguments = [command, str(segment), "--format", "parquet", "--out", output]
    program = (
        "import sys; from kafkawire_cli.main import app; app(sys.argv[1:], standalone_mode=False); "
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules; import pandas"
    )
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)
    assert parquet.read_table(output).num_rows
