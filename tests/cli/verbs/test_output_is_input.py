"""An output file that is one of the inputs is refused, and the input stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.reports import run
from tests.reports.diagnosis.stories import Story

COMMANDS = {
    "decode": (["decode"], ["--table", "exchanges"]),
    "sql": (["sql", "FROM exchanges"], []),
    "report": (["report"], []),
}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small capture."""
    story = Story().exchange("Metadata", 5)
    return story.save(tmp_path_factory.mktemp("small") / "small.pcap").read_bytes()


@pytest.fixture
def capture(tmp_path: Path, content: bytes) -> Path:
    """Write a capture to a file whose name is that of an output."""
    file = tmp_path / "self.jsonl"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_input_is_not_overwritten(
    verb: str, link: object, capture: Path, content: bytes
) -> None:
    to = capture
    if callable(link):
        to = capture.with_name("link.jsonl")
        link(capture, to)
    first, last = COMMANDS[verb]
    result = run(*first, capture, *last, "-o", to)
    assert result.exit_code == 2
    assert to.name in result.stderr
    assert capture.read_bytes() == content
    assert sorted(capture.parent.iterdir()) == sorted({capture, to})


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_file_of_a_directory_is_not_overwritten(verb: str, capture: Path, content: bytes) -> None:
    file = capture.rename(capture.with_name("t.pcap"))
    link = file.with_name("link.jsonl")
    link.symlink_to(file)
    first, last = COMMANDS[verb]
    assert run(*first, file.parent, *last, "-o", link).exit_code == 2
    assert file.read_bytes() == content


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_key_log_is_not_overwritten(verb: str, tmp_path: Path, capture: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    keys.write_text("# no keys\n", encoding="utf-8")
    first, last = COMMANDS[verb]
    assert run(*first, capture, *last, "--keylog", keys, "-o", keys).exit_code == 2
    assert keys.read_text(encoding="utf-8") == "# no keys\n"


@pytest.mark.parametrize("verb", COMMANDS)
def test_an_older_output_is_replaced(verb: str, tmp_path: Path, capture: Path) -> None:
    to = tmp_path / "out.jsonl"
    to.write_text("older", encoding="utf-8")
    first, last = COMMANDS[verb]
    assert run(*first, capture, *last, "-o", to).exit_code == 0
    assert to.read_text(encoding="utf-8") != "older"


@pytest.mark.parametrize("verb", COMMANDS)
def test_an_older_output_stays_if_there_is_nothing_to_read(verb: str, tmp_path: Path) -> None:
    to, empty = tmp_path / "out.jsonl", tmp_path / "empty.pcap"
    to.write_text("older", encoding="utf-8")
    empty.touch()
    first, last = COMMANDS[verb]
    assert run(*first, empty, *last, "-o", to).exit_code == 2
    assert to.read_text(encoding="utf-8") == "older"
