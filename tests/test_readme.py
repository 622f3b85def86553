"""README.md has five examples (tests/test_pages.py runs them), two commands, and the broker's
figures of docs/broker.md.
"""

from __future__ import annotations

import re
from statistics import geometric_mean

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


def test_figures_of_the_broker_are_those_of_its_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "broker.md").read_text(encoding="utf-8")
    table = page[page.index("| | kafkawire | librdkafka's mock |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    means = cells.pop()
    start_up = cells.pop(0)
    assert f"| {start_up[5]} / {start_up[4]} |" in readme
    for column in (4, 5):
        ratios = [float(row[column]) for row in cells]
        assert abs(geometric_mean(ratios) - float(means[column])) < 0.01
        shown = f"| {means[column]}; {min(ratios):.2g} (", f" to {max(ratios):.2g} ("
        assert any(all(part in line for part in shown) for line in readme.splitlines())
