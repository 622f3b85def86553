"""What the README and the docs show is executed as it stands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

ELSEWHERE = {"spark.md"}
"""Pages whose examples need more than a Python of their own: tests/spark/test_docs.py."""

PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in ELSEWHERE),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[object]:
    found: list[object] = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str, tmp_path: Path) -> None:
    for name in ("fixtures", "schemas"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", code]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def commands(text: str) -> list[tuple[str, str]]:
    """Split a console block into commands and what each is shown to print."""
    made: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            made.append((line[2:], ""))
        elif made:
            made[-1] = (made[-1][0], made[-1][1] + line + "\n")
    return made


@pytest.mark.parametrize("text", blocks("console"))
def test_console_examples_print_what_they_show(text: str) -> None:
    shown = [(command, output) for command, output in commands(text) if output]
    for command, output in shown:
        words = shlex.split(command)
        assert words[0] == "kafkawire", command
        ran = subprocess.run(
            [sys.executable, "-m", "kafkawire_cli.main", *words[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stdout == output, command


def test_the_readme_has_five_examples_and_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = [match for match in BLOCK.finditer(text) if match[1] in ("python", "console")]
    assert len(examples) == 5
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in text
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
