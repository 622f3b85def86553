"""The projects of docs/examples/build are built as docs/build.md says, which shows their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import blocks

from .build_examples import EXAMPLES, TOOLS, built, exercised


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_project_builds_its_messages(tool: str, compiled: bool, tmp_path: Path) -> None:
    """From an empty folder."""
    found = exercised(built(tool, tmp_path, compiled=compiled))
    assert found == ("compiled" if compiled else "interpreted")


def test_the_page_shows_the_files_of_the_projects() -> None:
    """Each block is a whole file of an example, named in the line above it."""
    texts = {
        path.read_text("utf-8"): path.relative_to(EXAMPLES)
        for path in EXAMPLES.rglob("*")
        if path.is_file()
    }
    shown = [block for block in blocks("docs/build.md") if block.language != "sh"]
    unknown = [block.name for block in shown if block.text not in texts]
    assert unknown == []
    files = {texts[block.text].as_posix() for block in shown}
    assert files >= {
        "hatchling/hatch_build.py",
        "hatchling/pyproject.toml",
        "setuptools/setup.py",
        "setuptools/pyproject.toml",
        "meson-python/meson.build",
        "meson-python/generate.py",
        "make/Makefile",
        "make/compile.py",
    }


def test_the_projects_differ_in_their_build_alone() -> None:
    for name in ("schemas/PingRequest.json", "schemas/PingResponse.json", "pinger/__init__.py"):
        assert len({(EXAMPLES / tool / name).read_text("utf-8") for tool in TOOLS}) == 1
