"""Compiled and interpreted builds read the state of each other."""

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

from . import engine_halves


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without native modules."""
    folder = tmp_path_factory.mktemp("interpreted")
    without = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kafkawire", folder / "kafkawire", ignore=without)
    return folder


def elsewhere(package: Path, *arguments: str) -> None:
    completed = subprocess.run(
        [sys.executable, str(Path(engine_halves.__file__)), *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == ".py\n"


def test_builds_read_each_others_state(interpreted: Path, tmp_path: Path) -> None:
    capture = str(shared("captures/live/mixed-a.pcap"))
    state, rows = str(tmp_path / "state"), str(tmp_path / "rows")
    elsewhere(interpreted, "begin", capture, state, rows)
    theirs = json.loads(Path(rows).read_text())
    ours, expected = engine_halves.begin(capture)
    assert theirs == expected
    assert len(expected) > 1000
    assert engine_halves.end(capture, Path(state).read_bytes()) == expected
    assert engine_halves.end(capture, ours) == expected
    Path(state).write_bytes(ours)
    elsewhere(interpreted, "end", capture, state, rows)
    assert json.loads(Path(rows).read_text()) == expected


class Owner:
    def called(self) -> str:
        return "back"


def test_external_objects_are_named_and_not_written() -> None:
    owner = Owner()
    there = Owner()
    written = dump({"call": owner.called, "owner": owner}, owner=owner)
    made = load(written, owner=there)
    assert made["owner"] is there
    assert made["call"].__self__ is there
    with pytest.raises(KeyError):
        load(written)
