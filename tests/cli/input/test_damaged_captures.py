"""Tables of captures that are truncated or corrupt: the damage is on standard error, once."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.reports import run
from tests.conftest import FIXTURES

CAPTURE = FIXTURES / "captures" / "ck-txn.pcap"
CUT = CAPTURE.read_bytes()[:-7]
DAMAGED = {
    "cut.pcap": CUT,
    "cut.pcap.gz": gzip.compress(CUT),
    "broken.pcap.gz": gzip.compress(CAPTURE.read_bytes())[:-9],
}
COMMANDS = {
    "table": (["decode"], ["--table", "exchanges"]),
    "processes": (["decode"], ["--table", "exchanges", "--jobs", "2"]),
    "sql": (["sql", "FROM exchanges"], []),
    "joined": (["sql", "FROM exchanges, records, load LIMIT 1"], []),
    "topics": (["sql", "FROM t"], ["--topic", "t", "--values", "string"]),
}


def damage(stderr: str) -> list[str]:
    """Return the lines but that about the topic, which the capture has not."""
    return [line for line in stderr.splitlines() if "no records of this topic" not in line]


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("command", COMMANDS)
def test_damage_is_reported_once(command: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(DAMAGED[name])
    first, last = COMMANDS[command]
    result = run(*first, CAPTURE, file, *last)
    assert result.exit_code == 0, result.output
    [line] = damage(result.stderr)
    assert str(file) in line
    assert "at byte" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_whole_captures_have_no_line(command: str) -> None:
    first, last = COMMANDS[command]
    assert damage(run(*first, CAPTURE, *last).stderr) == []
