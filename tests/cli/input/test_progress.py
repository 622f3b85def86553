"""The progress bar, on a real terminal; and no trace of it anywhere else."""

from __future__ import annotations

import os
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from kafkawire.records import BatchBuilder
from kafkawire_cli.input.captures.progress import MIN_BYTES
from tests.capture.written import Scenario
from tests.cli.reports import COMMAND, on_a_terminal, read_terminal, run, terminal
from tests.conftest import FIXTURES

SMALL = FIXTURES / "captures" / "kcat-kf.pcap"
WIPED = "\x1b[2K"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that is worth a bar: large messages, so that reading it does not take long."""
    builder = BatchBuilder()
    builder.append(b"key", bytes(60_000), 1)
    records = b64encode(builder.build()).decode()
    partition = {"index": 0, "records": records}
    scenario = Scenario()
    for _ in range(MIN_BYTES // 60_000 + 1):
        topic = {"name": "large", "partitionData": [partition]}
        scenario.request("Produce", 8, acks=1, timeoutMs=1000, topicData=[topic])
        response = {"name": "large", "partitionResponses": [{"index": 0}]}
        scenario.respond("Produce", 8, responses=[response])
    scenario.request("Heartbeat", 3, groupId="g", memberId="m", generationId=1).respond(
        "Heartbeat", 3
    )
    path = scenario.close().save(tmp_path_factory.mktemp("large") / "large.pcap")
    assert path.stat().st_size >= MIN_BYTES
    return path


VERBS = [
    ["decode", "--format", "jsonl"],
    ["decode", "--table", "exchanges"],
    ["summary"],
    ["groups", "--format", "json"],
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_bar_with_rates_is_drawn_and_wiped(verb: list[str], large: Path, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        result = on_a_terminal(*verb, large, out=out)
    for word in (" MB/s", " packets/s", "0%", "100%"):
        assert word in result, result
    assert result.endswith(WIPED)
    plain = run(*verb, large)
    assert (tmp_path / "out").read_bytes() == plain.stdout_bytes
    assert plain.stderr == ""


def test_a_table_in_a_file_leaves_the_terminal_to_the_bar(large: Path, tmp_path: Path) -> None:
    result = on_a_terminal("decode", large, "--table", "messages", "-o", tmp_path / "a.csv")
    assert " MB/s" in result
    assert result.endswith(WIPED)


def test_a_report_follows_the_bar(large: Path) -> None:
    """Both on one terminal: the bar is gone before the report begins."""
    bar, _, report = on_a_terminal("latency", large).rpartition(WIPED)
    assert " MB/s" in bar
    assert "Requests" in report
    assert "MB/s" not in report


def test_no_color_means_none(large: Path) -> None:
    result = on_a_terminal("topics", large, NO_COLOR="1")
    assert " MB/s" in result
    assert "\x1b[3" not in result
    assert "\x1b[9" not in result


def test_rows_on_the_terminal_leave_no_room_for_a_bar(large: Path) -> None:
    result = on_a_terminal("decode", large, "--format", "jsonl")
    assert result.startswith('{"capture"')
    assert "\x1b" not in result


def test_a_short_file_has_no_bar() -> None:
    for verb in ("decode", "summary"):
        assert on_a_terminal(verb, SMALL, out=subprocess.DEVNULL) == ""


def test_a_stream_has_no_bar(large: Path) -> None:
    with terminal() as (ours, theirs), large.open("rb") as file:
        command = [*COMMAND, "summary", "-", "--format", "json"]
        process = subprocess.run(
            command, stdin=file, stdout=subprocess.PIPE, stderr=theirs, check=True
        )
        os.close(theirs)
        assert b"".join(read_terminal(ours)) == b""
    assert process.stdout.startswith(b"{")
