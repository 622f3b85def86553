"""The generated TypeScript is right in the eyes of its compiler, as strict as it can be, and builds
to JavaScript that does the same. Collected where there is a compiler, and by `make soak`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.codegen.hostile import write

from .conftest import Compiler
from .hostile import HOSTILE
from .node import HERE, package, run, types
from .test_golden import VECTORS

pytestmark = pytest.mark.fuzz  # so `make soak` runs them
UNUSED = ("--noUnusedLocals", "--noEmit")


def test_types_of_kafkas_messages(sources: Path, tsc: Compiler) -> None:
    assert tsc(["--project", sources.parent, *UNUSED]) == ""


def test_types_of_hostile_schemas(tmp_path: Path, tsc: Compiler) -> None:
    sources = package(tmp_path / "out", write(tmp_path / "schemas", HOSTILE))
    assert tsc(["--project", sources.parent, "--noEmit"]) == ""


def test_a_user_of_the_built_package(sources: Path, tmp_path: Path, tsc: Compiler) -> None:
    """user.ts sees the types of dist; lines with @ts-expect-error are errors."""
    installed = tmp_path / "node_modules" / "kafka-messages"
    (installed / "src").parent.mkdir(parents=True)
    (installed / "package.json").write_bytes((sources.parent / "package.json").read_bytes())
    assert tsc(["--project", sources.parent, "--outDir", installed / "dist"]) == ""
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
    assert tsc([*options, tmp_path / "user.ts"]) == ""
    assert run(tmp_path / "user.js", cwd=tmp_path) == "me 18\n"
    result = json.loads(run(HERE / "golden.mjs", installed / "dist", types(tmp_path), VECTORS, "7"))
    assert result["wrong"] == 0, "\n".join(result["shown"])
    assert result["agreed"]["messages"] == 888
