"""`make demo`: what it installs, and what it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.build import get_requires_for_build_editable, get_requires_for_build_wheel
from packaging.requirements import Requirement

from tests.conftest import ROOT


def required(mode: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return what a frontend installs beside `build-system.requires`, as `pip install` does."""
    monkeypatch.setenv("KAFKAWIRE_COMPILE", mode)
    monkeypatch.chdir(ROOT)
    wheel, editable = get_requires_for_build_wheel(), get_requires_for_build_editable()
    assert set(wheel) <= set(editable)
    return {Requirement(one).name for one in wheel}


def test_only_builds_that_compile_require_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert required("off", monkeypatch) == set()
    assert required("hot", monkeypatch) == required("all", monkeypatch) > {"mypy", "setuptools"}


def make(*arguments: str | Path) -> str:
    """Run make in the checkout; return what it printed."""
    done = subprocess.run(
        ["make", "--no-print-directory", *map(str, arguments)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_a_fresh_clone_gets_the_package_alone_interpreted(tmp_path: Path) -> None:
    commands = make("--dry-run", "demo", f"VENV={tmp_path}/venv")
    (install,) = (line for line in commands.splitlines() if "pip install" in line)
    assert install.startswith("KAFKAWIRE_COMPILE=off ")
    assert install.endswith(" --editable '.[report]'")


def test_it_shows_incidents_and_names_its_page(tmp_path: Path) -> None:
    (tmp_path / "ready-hot").touch()  # installed, as here
    page = tmp_path / "pages" / "demo.html"
    settings = (f"VENV={tmp_path}", f"BIN={Path(sys.executable).parent}", f"PAGE={page}")
    shown = make("demo", *settings)
    assert "OffsetCommit failed with REBALANCE_IN_PROGRESS" in shown
    assert "WARNING rebalance-storm: group billing" in shown
    assert str(page) in shown.splitlines()[-1]
    assert "Content-Security-Policy" in page.read_text("utf-8")
