"""`decode --table` and `sql`: --strict; runs that write to the same directory."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import kafkawire
from tests.capture.written import Scenario
from tests.cli.reports import run
from tests.reports.diagnosis.stories import Story


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return Story().exchange("Metadata", 5).save(tmp_path / "whole.pcap")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A request that cannot be decoded."""
    body = kafkawire.from_json("HeartbeatRequest", 3, {})
    request = bytearray(kafkawire.encode_frame(body, 3, 1))
    request[15] = 0x7F  # the length of the group id
    story = Scenario().send(0, bytes(request)).request("Metadata", 5).respond("Metadata", 5)
    return story.save(tmp_path / "damaged.pcap")


VERBS = {
    "decode": (["decode"], ["--table", "exchanges"]),
    "decode, two processes": (["decode"], ["--table", "exchanges", "--jobs", "2"]),
    "decode problems": (["decode"], ["--table", "problems"]),
    "sql": (["sql", "SELECT count(*) FROM exchanges"], []),
}


@pytest.mark.parametrize("verb", VERBS)
def test_with_strict_what_is_not_decoded_is_said_and_fails(
    verb: str, whole: Path, damaged: Path
) -> None:
    first, last = VERBS[verb]
    assert run(*first, whole, *last, "--strict").exit_code == 0
    assert run(*first, damaged, *last).exit_code == 0
    strict = run(*first, damaged, *last, "--strict")
    assert strict.exit_code == 1
    assert "problem" in strict.stderr
    assert strict.stdout == run(*first, damaged, *last).stdout


def test_with_strict_the_first_place_is_named(damaged: Path, tmp_path: Path) -> None:
    to = tmp_path / "out.parquet"
    result = run("decode", damaged, "--table", "exchanges", "-o", to, "--strict")
    assert f"{damaged} packet 3: malformed: HeartbeatRequest" in result.stderr
    assert parquet.read_table(to).schema.names[0] == "file"


def test_with_strict_a_file_that_ends_early_fails(whole: Path) -> None:
    whole.write_bytes(whole.read_bytes()[:-3])
    for first, last in VERBS.values():
        assert run(*first, whole, *last, "--strict").exit_code == 1


def test_sql_cannot_read_a_stream_twice(whole: Path) -> None:
    result = run("sql", "FROM exchanges", "-", "--strict", stdin=whole.read_bytes())
    assert result.exit_code == 2
    assert "--strict" in result.stderr


def written(capture: Path, table: str, to: Path, *options: str) -> int:
    return run("decode", capture, "--table", table, "-o", to, *options).exit_code


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_say_which_run_wrote_them(whole: Path, tmp_path: Path, ending: str) -> None:
    to = tmp_path / f"out.{ending}"
    assert written(whole, "exchanges", to, "--filter", "api == Metadata") == 0
    schema = pa.ipc.open_file(to).schema if ending == "arrow" else parquet.read_schema(to)
    about = json.loads(schema.metadata[b"kafkawire"])
    assert about["version"] == kafkawire.__version__
    assert about["inputs"] == [{"file": str(whole), "bytes": whole.stat().st_size}]
    assert (about["filter"], about["redact"]) == ("api == Metadata", False)


def test_tables_of_other_captures_are_not_left_beside_new_ones(
    whole: Path, damaged: Path, tmp_path: Path
) -> None:
    to = tmp_path / "tables"
    assert written(whole, "exchanges", to) == 0
    assert written(whole, "records", to) == 0, "of the same capture"
    before = (to / "exchanges.parquet").read_bytes()
    result = run("decode", damaged, "--table", "records", "-o", to)
    assert result.exit_code == 2
    assert "exchanges of other captures" in result.stderr
    assert written(whole, "records", to, "--redact") == 2
    assert (to / "exchanges.parquet").read_bytes() == before
    both = ("--table", "exchanges", "--table", "records")
    assert run("decode", damaged, *both, "-o", to).exit_code == 0


def test_a_table_of_an_unknown_run_is_not_mixed_with_others(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "records.parquet").write_bytes(b"not Parquet")
    assert written(whole, "exchanges", tmp_path) == 2
    assert written(whole, "records", tmp_path) == 0
