"""Every input of fixtures/hostile through every command that reads its kind.

An exit code of 0, 1 or 2 and a message, never a traceback; no control character and no secret
reaches the output.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from typer.testing import Result

from tests.cli.reports import run
from tests.conftest import FIXTURES

CORPUS: Final = FIXTURES / "hostile"
SECRETS: Final = ("hunter2", "68756e74657232", "aHVudGVyMg")
"""The secret of the corpus as text, hex and base64."""
CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
REPORTS: Final = ("summary", "latency", "topics", "clients", "groups", "transactions")
FORMATS: Final = ("table", "tree", "jsonl")
TABLES: Final = ("exchanges", "messages", "records", "partitions", "connections", "problems")


def files(suffix: str) -> list[Path]:
    return sorted(CORPUS.glob(f"*{suffix}"))


def check(result: Result) -> None:
    """Hold the law against what a command did."""
    assert result.exit_code in (0, 1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not CONTROL.search(result.output)
    assert not any(secret in result.output for secret in SECRETS)


@pytest.mark.parametrize("path", files(".pcap"), ids=lambda path: path.stem)
def test_captures(path: Path) -> None:
    for form in FORMATS:
        check(run("decode", path, "--format", form, "--records"))
    for table in TABLES:
        check(run("decode", path, "--table", table))
    for verb in REPORTS:
        check(run(verb, path))
        check(run(verb, path, "--format", "json"))


@pytest.mark.parametrize("path", files(".log"), ids=lambda path: path.stem)
def test_log_files(path: Path) -> None:
    for form in ("jsonl", "table"):
        check(run("log", path, "--format", form))


def test_records_before_the_fault_stand() -> None:
    result = run("log", CORPUS / "gzip-cut-in-the-sixth.log", "--format", "jsonl")
    assert [n for n in range(6) if f"value {n}" in result.stdout] == [0, 1, 2, 3, 4]


def test_a_config_key_is_not_a_topic() -> None:
    result = run("decode", CORPUS / "config-of-a-topic.pcap", "--format", "table")
    assert "topics=a\n" in result.stdout


@pytest.mark.parametrize("line", (CORPUS / "bodies.txt").read_text().splitlines())
def test_bodies(line: str) -> None:
    api, version, body = line.split(" ", 2)
    for verb in ("explain", "decode"):
        check(run(verb, body, "--api", api, "--version", version))


def test_a_schema(tmp_path: Path) -> None:
    schemas, out = tmp_path / "schemas", tmp_path / "out"
    schemas.mkdir()
    (path,) = files(".json")
    (schemas / path.name).write_bytes(path.read_bytes())
    check(run("schema", "lint", schemas))
    result = run("codegen", "--schemas", schemas, "--package", "hostile.messages", "--out", out)
    check(result)
    assert result.exit_code == 0
    source = (out / "hostile_request.py").read_text()
    compile(source, "hostile_request.py", "exec")


def test_each_file_has_a_line() -> None:
    listed = set(re.findall(r"^\| `([^`]+)`", (CORPUS / "README.md").read_text(), re.MULTILINE))
    assert listed == {path.name for path in CORPUS.iterdir()} - {"README.md"}
