"""Commits are atomic, wherever a process stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kafkawire.capture.snapshot import STATE_VERSION
from kafkawire.spark.watch.commit_log import Commit, CommitLog, CommittedFile, WatchError

TABLES = ("exchanges", "records")


class Stopped(Exception):
    """The process was stopped."""


def batch(commit_log: CommitLog, steps: list[Callable[[], object]], stop: int, file: str) -> None:
    """Write a batch of one file, but stop after some steps."""
    number = len(commit_log.commits)
    folder = commit_log.stage(number)
    made = Commit(
        number, False, (CommittedFile(file, 1, 2, 3),), {"exchanges": 1, "records": 0},
        folder.name, folder.name, number, 4, (3, file), {},
    )  # fmt: skip
    steps += [
        lambda: (folder / "written" / "stray.parquet").write_text("stray"),
        lambda: (folder / "written" / "good.parquet").write_text(file),
        lambda: (folder / "state" / "connections.arrow").write_text(file),
        lambda: commit_log.ready(folder, {"good.parquet": "exchanges"}),
        lambda: commit_log.commit(made),
        commit_log.publish,
    ]
    for at, step in enumerate(steps):
        if at == stop:
            raise Stopped
        step()


@pytest.mark.parametrize("stop", range(7))
def test_stopped_anywhere(tmp_path: Path, stop: int) -> None:
    with CommitLog(tmp_path, TABLES) as commit_log:
        batch(commit_log, [], 99, "first")
    with CommitLog(tmp_path, TABLES) as commit_log, suppress(Stopped):
        batch(commit_log, [], stop, "second")
    files = ["first", "second"] if stop >= 5 else ["first"]
    with CommitLog(tmp_path, TABLES) as commit_log:
        assert list(commit_log.names) == files
        assert list(commit_log.taken) == files
        found = sorted(tmp_path.glob("exchanges/batch=*/*"))
        assert [path.read_text() for path in found] == files
        assert {path.name for path in found} == {"good.parquet"}
        assert commit_log.state is not None
        assert (commit_log.state / "connections.arrow").read_text() == files[-1]
        assert [path.name for path in (tmp_path / "_watch" / "state").iterdir()] == [
            commit_log.state.name
        ]
        assert not list((tmp_path / "_watch" / "staging").iterdir())


def test_an_incomplete_commit_is_ignored(tmp_path: Path) -> None:
    CommitLog(tmp_path, TABLES).__exit__()
    half = tmp_path / "_watch" / "commits" / "00000000.tmp"
    half.write_text('{"batch": 0, "la')
    with CommitLog(tmp_path, TABLES) as commit_log:
        assert commit_log.last is None
    assert not half.exists()


def test_one_at_a_time(tmp_path: Path) -> None:
    with CommitLog(tmp_path, TABLES), pytest.raises(WatchError, match="another watch"):
        CommitLog(tmp_path, TABLES)
    CommitLog(tmp_path, TABLES).__exit__()


def test_incompatible_state_is_refused(tmp_path: Path) -> None:
    with CommitLog(tmp_path, TABLES) as commit_log:
        batch(commit_log, [], 99, "first")
        last = commit_log.commits[-1]
    with pytest.raises(WatchError, match="writes the tables exchanges, records"):
        CommitLog(tmp_path, ("exchanges",))
    path = tmp_path / "_watch" / "commits" / "00000000.json"
    commit = json.loads(path.read_text())
    path.write_text(json.dumps({**commit, "state_version": STATE_VERSION + 1}))
    with pytest.raises(WatchError, match="another version"):
        CommitLog(tmp_path, TABLES)
    path.write_text(json.dumps({**commit, "state_version": STATE_VERSION + 1, "closed": True}))
    with CommitLog(tmp_path, TABLES) as commit_log:
        assert commit_log.last == replace(last, state_version=STATE_VERSION + 1, closed=True)


def test_a_state_of_the_first_format_is_refused(tmp_path: Path) -> None:
    """Its commits had a digest of source text instead of a version number."""
    with CommitLog(tmp_path, TABLES) as commit_log:
        batch(commit_log, [], 99, "first")
    path = tmp_path / "_watch" / "commits" / "00000000.json"
    commit = json.loads(path.read_text())
    del commit["state_version"]
    path.write_text(json.dumps({**commit, "classes": "0123456789abcdef", "format": 1}))
    with pytest.raises(WatchError, match="another version"):
        CommitLog(tmp_path, TABLES)
    path.write_text(json.dumps({**commit, "classes": "0123", "format": 1, "closed": True}))
    with CommitLog(tmp_path, TABLES) as commit_log:
        assert commit_log.last is not None
        assert commit_log.last.closed
