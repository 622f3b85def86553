"""The generated package, and what checks its types: `make soak` and CI, or TypeScript on the PATH.

Law: `make test` needs no npm registry; so where TypeScript is not installed it collects no test of
types, and `make soak` installs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import missing

from .node import node, package

SOAKING = "KAFKAWIRE_SOAK" in os.environ
collect_ignore = [] if SOAKING or shutil.which("tsc") else ["test_types.py"]

Compiler = Callable[[Sequence[str | Path]], str]


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the package of Kafka's messages."""
    return package(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="session")
def tsc(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """Runs the compiler; gives what it prints, which is nothing if all is right."""
    found = shutil.which("tsc")
    command: list[str | Path] = [found] if found else [node(), _installed(tmp_path_factory)]

    def compile(arguments: Sequence[str | Path]) -> str:
        ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert bool(ran.returncode) == bool(ran.stdout), ran.stderr
        return ran.stdout

    return compile


def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("npm")
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command: list[str | Path] = [
        node(),
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "typescript@>=5.8",
    ]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        missing(f"TypeScript from npm ({ran.stderr[-200:]})")
    return folder / "node_modules" / "typescript" / "bin" / "tsc"
