"""Directories and patterns: which files are captures is the same for every verb and for Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kafkawire.spark.plan.verdicts import FileStatus, of_head
from kafkawire.spark.splitting import inputs
from tests.cli.reports import run
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
ROTATED = {
    "trace.pcap": "ck-txn.pcap",
    "trace.pcap.1": "ck-848.pcap",
    "trace.pcap.2.gz": "ck-sll1.pcap",
    "cap.20261121": "ck-group-range.pcap",
}
OTHERS = ("README.md", "empty", "note\x1b[2J.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a directory of rotated captures, other files and hidden ones."""
    for name, source in ROTATED.items():
        data = (CAPTURES / source).read_bytes()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        (tmp_path / f".{name}").write_bytes(data)
    for name in OTHERS:
        (tmp_path / name).write_text("text" * bool(name != "empty"), encoding="utf-8")
    (tmp_path / "older.pcap").mkdir()
    return tmp_path


COMMANDS = {
    "decode": ["decode", "--format", "jsonl"],
    "tables": ["decode", "--table", "exchanges"],
    "sql": ["sql", "FROM exchanges"],
    "latency": ["latency"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_rotated_files_of_a_directory_are_read(command: str, folder: Path) -> None:
    words = COMMANDS[command]
    whole = run(*words, folder)
    assert whole.exit_code == 0, whole.stderr
    named = run(*words, *(folder / name for name in sorted(ROTATED)))
    assert whole.stdout == named.stdout
    assert named.stderr == ""
    [line] = whole.stderr.splitlines()
    assert str(len(OTHERS)) in line
    assert "README.md" in line
    assert "\x1b" not in line


def test_spark_reads_the_same_files(folder: Path) -> None:
    status = {Path(each.name).name: of_head(each).status for each in inputs([folder])}
    assert status == dict.fromkeys(ROTATED, FileStatus.OK) | dict.fromkeys(
        OTHERS, FileStatus.IGNORED
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_quoted_pattern_stands_for_its_files(command: str, folder: Path) -> None:
    words = COMMANDS[command]
    found = run(*words, folder / "trace*")
    assert found.exit_code == 0, found.stderr
    names = sorted(name for name in ROTATED if name.startswith("trace"))
    assert found.stdout == run(*words, *(folder / name for name in names)).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pattern_without_files_is_an_error(command: str, folder: Path) -> None:
    result = run(*COMMANDS[command], folder / "x*.pcap")
    assert result.exit_code == 2
    assert str(folder / "x*.pcap") in result.stderr


def test_a_file_whose_name_has_wildcards_is_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a[1]*.pcap"
    file.write_bytes((CAPTURES / "ck-txn.pcap").read_bytes())
    (tmp_path / "a1.pcap").write_bytes(b"not read")
    result = run("decode", file, "--table", "exchanges")
    assert result.exit_code == 0, result.stderr
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 25
