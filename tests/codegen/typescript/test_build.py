"""What `npm run build` makes of the package, with the TypeScript of npm: run by `make soak`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing

from .node import HERE, node, run, types
from .test_golden import VECTORS

pytestmark = pytest.mark.fuzz  # so `make soak` runs it


def tsc(folder: Path, *arguments: str | Path) -> None:
    """Install TypeScript in a folder, and run it."""
    npm = node().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        options = ("--no-audit", "--no-fund", "typescript@>=5.8")
        install: list[str | Path] = [node(), npm, "install", *options]
        ran = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
        if ran.returncode:
            missing(f"TypeScript from npm ({ran.stderr[-200:]})")
    command: list[str | Path] = [node(), compiler, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout[-3000:]


def test_a_user_of_the_built_package(
    sources: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """user.ts sees the types of dist, and what it compiles to runs."""
    npm = tmp_path_factory.mktemp("npm")
    installed = tmp_path / "node_modules" / "kafka-messages"
    (installed / "src").parent.mkdir(parents=True)
    (installed / "package.json").write_bytes((sources.parent / "package.json").read_bytes())
    tsc(npm, "--project", sources.parent, "--outDir", installed / "dist")
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    (tmp_path / "user.ts").write_bytes((HERE / "user.ts").read_bytes())
    options: list[str | Path] = [
        "--strict",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--outDir",
        tmp_path,
    ]
    tsc(npm, *options, tmp_path / "user.ts")
    assert run(tmp_path / "user.js", cwd=tmp_path) == "me 18\n"
    result = json.loads(run(HERE / "golden.mjs", installed / "dist", types(tmp_path), VECTORS, "7"))
    assert result["wrong"] == 0, "\n".join(result["shown"])
    assert result["agreed"]["messages"] == 888
