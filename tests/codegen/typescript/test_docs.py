"""The examples of docs/typescript.md run, and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import Block, blocks

from .node import HERE, run

PAGE = "docs/typescript.md"
PRINTED = re.compile(r"console\.log\(.*\); // (.*)$", re.MULTILINE)


@pytest.mark.parametrize("block", blocks(PAGE, "ts"), ids=lambda block: block.name)
def test_examples_print_what_they_say(
    block: Block, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = tmp_path / "example.ts"
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    example.write_text(block.text, "utf-8")
    monkeypatch.setenv("KAFKAWIRE_SOURCES", str(sources))
    printed = run("--import", HERE / "pages.mjs", example)
    assert printed.splitlines() == PRINTED.findall(block.text)
    assert printed
