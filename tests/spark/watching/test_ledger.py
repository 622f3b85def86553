"""A batch is there as a whole or not at all, wherever a process stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kafkawire.spark.watch.ledger import Commit, Ledger, Taken, WatchError

TABLES = ("exchanges", "records")


class Stopped(Exception):
    """The process is gone."""


def batch(ledger: Ledger, steps: list[Callable[[], object]], stop: int, file: str) -> None:
    """Write a batch of a file, but stop behind so many steps."""
    number = len(ledger.commits)
    folder = ledger.stage(number)
    made = Commit(
        number, False, (Taken(file, 1, 2, 3),), {"exchanges": 1, "records": 0},
        folder.name, folder.name, number, 4, (3, file), {},
    )  # fmt: skip
    steps += [
        lambda: (folder / "written" / "stray.parquet").write_text("stray"),
        lambda: (folder / "written" / "good.parquet").write_text(file),
        lambda: (folder / "state" / "connections.arrow").write_text(file),
        lambda: ledger.ready(folder, {"good.parquet": "exchanges"}),
        lambda: ledger.commit(made),
        ledger.publish,
    ]
    for at, step in enumerate(steps):
        if at == stop:
            raise Stopped
        step()


@pytest.mark.parametrize("stop", range(7))
def test_stopped_anywhere(tmp_path: Path, stop: int) -> None:
    with Ledger(tmp_path, TABLES) as ledger:
        batch(ledger, [], 99, "first")
    with Ledger(tmp_path, TABLES) as ledger, suppress(Stopped):
        batch(ledger, [], stop, "second")
    files = ["first", "second"] if stop >= 5 else ["first"]
    with Ledger(tmp_path, TABLES) as ledger:
        assert list(ledger.names) == files
        assert list(ledger.taken) == files
        found = sorted(tmp_path.glob("exchanges/batch=*/*"))
        assert [path.read_text() for path in found] == files
        assert {path.name for path in found} == {"good.parquet"}
        assert ledger.state is not None
        assert (ledger.state / "connections.arrow").read_text() == files[-1]
        assert [path.name for path in (tmp_path / "_watch" / "state").iterdir()] == [
            ledger.state.name
        ]
        assert not list((tmp_path / "_watch" / "staging").iterdir())


def test_a_commit_that_was_being_written_counts_for_nothing(tmp_path: Path) -> None:
    Ledger(tmp_path, TABLES).__exit__()
    half = tmp_path / "_watch" / "commits" / "00000000.tmp"
    half.write_text('{"batch": 0, "la')
    with Ledger(tmp_path, TABLES) as ledger:
        assert ledger.last is None
    assert not half.exists()


def test_one_at_a_time(tmp_path: Path) -> None:
    with Ledger(tmp_path, TABLES), pytest.raises(WatchError, match="another process"):
        Ledger(tmp_path, TABLES)
    Ledger(tmp_path, TABLES).__exit__()


def test_what_cannot_go_on(tmp_path: Path) -> None:
    with Ledger(tmp_path, TABLES) as ledger:
        batch(ledger, [], 99, "first")
        last = ledger.commits[-1]
    with pytest.raises(WatchError, match="makes the tables exchanges, records"):
        Ledger(tmp_path, ("exchanges",))
    path = tmp_path / "_watch" / "commits" / "00000000.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "classes": "of another version"}))
    with pytest.raises(WatchError, match="another version"):
        Ledger(tmp_path, TABLES)
    path.write_text(json.dumps({**told, "classes": "of another version", "closed": True}))
    with Ledger(tmp_path, TABLES) as ledger:
        assert ledger.last == replace(last, classes="of another version", closed=True)
