"""A state is read by whatever build: compiled or interpreted, it goes on where the other was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkawire.spark.watch.snapshot import dump, load
from tests.conftest import ROOT, shared

from . import kept


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without native modules."""
    folder = tmp_path_factory.mktemp("interpreted")
    without = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kafkawire", folder / "kafkawire", ignore=without)
    return folder


def elsewhere(package: Path, *arguments: str) -> None:
    told = subprocess.run(
        [sys.executable, str(Path(kept.__file__)), *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert told.stdout == ".py\n"


def test_builds_read_each_others_state(interpreted: Path, tmp_path: Path) -> None:
    capture = str(shared("captures/live/mixed-a.pcap"))
    state, rows = str(tmp_path / "state"), str(tmp_path / "rows")
    elsewhere(interpreted, "begin", capture, state, rows)
    theirs = json.loads(Path(rows).read_text())
    ours, said = kept.begin(capture)
    assert theirs == said
    assert len(said) > 1000
    assert kept.end(capture, Path(state).read_bytes()) == said
    assert kept.end(capture, ours) == said
    Path(state).write_bytes(ours)
    elsewhere(interpreted, "end", capture, state, rows)
    assert json.loads(Path(rows).read_text()) == said


class Owner:
    def called(self) -> str:
        return "back"


def test_what_is_called_back_is_named_and_not_written() -> None:
    here = Owner()
    there = Owner()
    written = dump({"call": here.called, "owner": here}, owner=here)
    made = load(written, owner=there)
    assert made["owner"] is there
    assert made["call"].__self__ is there
    with pytest.raises(KeyError):
        load(written)
