"""README.md has five examples (tests/test_pages.py runs them) and two commands."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.pages import blocks


def test_the_readme_has_five_examples_and_its_two_commands() -> None:
    examples = [block for block in blocks("README.md") if block.language in ("python", "console")]
    assert len(examples) == 5
    (block,) = blocks("README.md", "sh")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in block.text.splitlines():
        make, target, *_ = line.split()
        assert make == "make"
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
