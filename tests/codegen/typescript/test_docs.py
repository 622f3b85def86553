"""The examples of docs/typescript.md run, and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import Block, blocks

from .node import HERE, run

README = re.compile(r"```js\n(.*?)```", re.DOTALL)
PAGE = "docs/typescript.md"
PRINTED = re.compile(r"console\.log\(.*\); // (.*)$", re.MULTILINE)


def printed_by(text: str, folder: Path) -> str:
    """Run an example, and return what it prints."""
    example = folder / "example.ts"
    (folder / "package.json").write_text('{ "type": "module" }')
    example.write_text(text, "utf-8")
    return run("--import", HERE / "pages.mjs", example)


@pytest.mark.parametrize("block", blocks(PAGE, "ts"), ids=lambda block: block.name)
def test_examples_print_what_they_say(
    block: Block, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKAWIRE_SOURCES", str(sources))
    printed = printed_by(block.text, tmp_path)
    assert printed.splitlines() == PRINTED.findall(block.text)
    assert printed


def test_the_example_of_the_generated_readme_runs(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKAWIRE_SOURCES", str(sources))
    (example,) = README.findall((sources.parent / "README.md").read_text("utf-8"))
    assert printed_by(example, tmp_path).startswith("{")
