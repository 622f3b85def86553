"""Directories and patterns: which files are captures is the same for every verb and for Spark."""

from __future__ import annotations

import gzip
import json
import os
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
    [line, of_directories] = whole.stderr.splitlines()
    assert str(len(OTHERS)) in line
    assert "README.md" in line
    assert "\x1b" not in whole.stderr
    assert of_directories.endswith(f"{folder}: 1 directory in it not read: older.pcap")


def test_nothing_of_a_directory_is_passed_over_silently(tmp_path: Path) -> None:
    """What vanished is refused by name; pipes are not opened, which would wait for a writer."""
    (tmp_path / "a.pcap").write_bytes((CAPTURES / "ck-txn.pcap").read_bytes())
    (tmp_path / "gone.pcap").symlink_to("nowhere")
    (tmp_path / "gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.pcap")
    for day in range(1, 6):
        (tmp_path / f"day={day}").mkdir()
    result = run("decode", "--table", "connections", tmp_path)
    assert result.exit_code == 2
    ignored, directories, gone, rest = result.stderr.splitlines()
    assert ignored.endswith(": 2 files ignored, not captures by name or content: gone, pipe.pcap")
    assert directories.endswith(": 5 directories in it not read: day=1, day=2, day=3, ...")
    assert gone.endswith("gone.pcap: No such file or directory")
    assert rest.endswith("the tables cover the other inputs")
    assert result.stdout == run("decode", "--table", "connections", tmp_path / "a.pcap").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_to_a_file_of_the_same_directory_is_not_read(command: str, tmp_path: Path) -> None:
    """Rotating tools make them: `latest.pcap` is the newest file, whose messages count once."""
    words = COMMANDS[command]
    files, elsewhere = tmp_path / "files", tmp_path / "elsewhere.pcap"
    files.mkdir()
    elsewhere.write_bytes((CAPTURES / "ck-848.pcap").read_bytes())
    (files / "a.pcap").write_bytes((CAPTURES / "ck-txn.pcap").read_bytes())
    (files / "other.pcap").symlink_to(elsewhere)
    named = run(*words, files / "a.pcap", files / "other.pcap")
    (files / ".hidden").write_bytes((files / "a.pcap").read_bytes())
    (files / "latest.pcap").symlink_to("a.pcap")
    whole = run(*words, files)
    assert whole.exit_code == 0
    assert whole.stdout == named.stdout
    assert whole.stderr.endswith(f"{files}: 1 link not read: latest.pcap is a.pcap\n")
    (files / "latest.pcap").unlink()
    (files / "latest.pcap").symlink_to(".hidden")
    assert "link" not in run(*words, files).stderr


def test_spark_does_not_read_such_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes((CAPTURES / "ck-txn.pcap").read_bytes())
    (tmp_path / "latest.pcap").symlink_to("a.pcap")
    said: dict[str, str] = {}
    listed = inputs([tmp_path], ignored=said.__setitem__)
    assert [Path(each.name).name for each in listed] == ["a.pcap"]
    assert list(said) == [str(tmp_path / "latest.pcap")]


@pytest.mark.parametrize("verb", ["decode", "summary"])
def test_a_directory_of_directories_says_so(verb: str, tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    result = run(verb, tmp_path)
    assert result.exit_code == 2
    assert "by name or content; 1 directory in it not read: day=1" in result.stderr


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
