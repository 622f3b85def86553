"""The first minutes of the five kinds of people for whom README.md is, on terminals.

What README.md tells each of them to start with is here, and runs with what they have then.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from benchmarks.startup import TESTED
from kafkawire.display import text_width
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import on_a_terminal
from tests.conftest import ROOT
from tests.pages import Playground
from tests.recordings import recording

SGR: Final = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS: Final = (80, 100, 140)
STORM: Final = ROOT / "fixtures" / "incidents" / "rebalance-storm.pcap.gz"
TRACE: Final = recording("ck-group-range.pcap")
HEARTBEAT: Final = "0862696c6c696e6700000007046d2d310000"


class Step(NamedTuple):
    """A command, and what it shows. fits: whether its lines are fitted to the terminal."""

    arguments: tuple[object, ...]
    shows: str
    fits: bool = True


class Place(NamedTuple):
    """What a user has: a folder with the files of the pages, and a cluster."""

    folder: Path
    bootstrap: str


def on_call(place: Place) -> Iterator[Step]:
    yield Step(("diagnose", STORM), "rebalance-storm")
    yield Step(("summary", TRACE), "grp-range")
    yield Step(("groups", TRACE), "REBALANCE_IN_PROGRESS")
    yield Step(("latency", TRACE), "JoinGroup")
    yield Step(("report", STORM, "-o", place.folder / "page.html"), "page.html", fits=False)


def data(place: Place) -> Iterator[Step]:
    tables = place.folder / "exchanges.parquet"
    yield Step(("decode", TRACE, "--table", "exchanges"), '"latency_ns"', fits=False)
    yield Step(("decode", TRACE, "--table", "exchanges", "-o", tables), "", fits=False)
    query = "SELECT api_name, count(*) AS n FROM exchanges GROUP BY 1 ORDER BY 2 DESC"
    yield Step(("sql", query, TRACE), "OffsetCommit")


def builds(place: Place) -> Iterator[Step]:
    out = ("--package", "mine.messages", "--out", place.folder / "mine" / "messages")
    yield Step(
        ("codegen", "--schemas", place.folder / "my-schemas", *out), "2 messages", fits=False
    )
    yield Step(("explain", HEARTBEAT, "--api", "Heartbeat", "--version", "4"), "group_id")


def operates(place: Place) -> Iterator[Step]:
    yield Step(("cluster", place.bootstrap), "controller")
    yield Step(("topics", "-b", place.bootstrap), "orders")
    yield Step(("groups", "-b", place.bootstrap), "")
    yield Step(("log", place.folder / "orders-0"), "apples", fits=False)


WALKS: Final = {
    "are on call": on_call,
    "work with data": data,
    "build a client, a proxy, a tool": builds,
    "run a cluster": operates,
}
WITHOUT_TERMINAL: Final = {"write tests"}
ELSEWHERE: Final = {"spark"}
"""Verbs that start Java: tests/spark."""


def table() -> dict[str, str]:
    """The rows of README.md: who, and what to start with."""
    text = (ROOT / "README.md").read_text("utf-8")
    [rows] = re.findall(r"^\| you \|.*\n\|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows.splitlines()]
    return {row[1]: row[3] for row in cells}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Playground(tmp_path)
    with ServerThread() as cluster:
        cluster.create_topic("orders")
        yield Place(tmp_path, cluster.bootstrap)


def test_each_kind_of_people_has_a_walk_with_the_verbs_named(place: Place) -> None:
    rows = table()
    assert rows.keys() == WALKS.keys() | WITHOUT_TERMINAL
    for who, walk in WALKS.items():
        code = re.findall(r"`([^`]+)`", rows[who])
        named = {
            each.removeprefix("kafkawire ").split()[0] for each in code if "." not in each[:10]
        }
        assert named - ELSEWHERE <= {str(step.arguments[0]) for step in walk(place)}, who


@pytest.mark.parametrize("who", WALKS)
def test_a_walk(who: str, place: Place) -> None:
    for arguments, shows, fits in WALKS[who](place):
        for columns in WIDTHS if fits else WIDTHS[:1]:
            shown = SGR.sub("", on_a_terminal(*arguments, columns=columns)).replace("\r\n", "\n")
            assert shows in shown, arguments
            assert "Traceback" not in shown
            if fits:
                assert max(map(text_width, shown.splitlines()), default=0) <= columns, arguments


def test_a_first_test_with_a_broker_is_green(tmp_path: Path) -> None:
    """`python -m benchmarks startup` times it."""
    (tmp_path / "test_orders.py").write_text(TESTED)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
