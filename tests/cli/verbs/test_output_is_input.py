"""An output file that is one of the inputs is refused, and the input stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.reports import run
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "captures" / "ck-txn.pcap"
COMMANDS = {
    "decode": (["decode"], ["--table", "exchanges"]),
    "sql": (["sql", "FROM exchanges"], []),
    "report": (["report"], []),
}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Copy a capture to a file whose name is that of an output."""
    file = tmp_path / "self.jsonl"
    file.write_bytes(CAPTURE.read_bytes())
    return file


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_input_is_not_overwritten(verb: str, link: object, capture: Path) -> None:
    to = capture
    if callable(link):
        to = capture.with_name("link.jsonl")
        link(capture, to)
    first, last = COMMANDS[verb]
    result = run(*first, capture, *last, "-o", to)
    assert result.exit_code == 2
    assert to.name in result.stderr
    assert capture.read_bytes() == CAPTURE.read_bytes()
    assert sorted(capture.parent.iterdir()) == sorted({capture, to})


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_file_of_a_directory_is_not_overwritten(verb: str, capture: Path) -> None:
    file = capture.rename(capture.with_name("t.pcap"))
    link = file.with_name("link.jsonl")
    link.symlink_to(file)
    first, last = COMMANDS[verb]
    assert run(*first, file.parent, *last, "-o", link).exit_code == 2
    assert file.read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_key_log_is_not_overwritten(verb: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.write_text("# no keys\n", encoding="utf-8")
    first, last = COMMANDS[verb]
    assert run(*first, CAPTURE, *last, "--keylog", keys, "-o", keys).exit_code == 2
    assert keys.read_text(encoding="utf-8") == "# no keys\n"


@pytest.mark.parametrize("verb", COMMANDS)
def test_an_older_output_is_replaced(verb: str, tmp_path: Path) -> None:
    to = tmp_path / "out.jsonl"
    to.write_text("older", encoding="utf-8")
    first, last = COMMANDS[verb]
    assert run(*first, CAPTURE, *last, "-o", to).exit_code == 0
    assert to.read_text(encoding="utf-8") != "older"
