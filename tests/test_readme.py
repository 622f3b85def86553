"""The commands of README.md are there, and its figures and those of docs/figures.md agree.

tests/test_pages.py runs its examples.
"""

from __future__ import annotations

import re
from statistics import geometric_mean

from tests.conftest import ROOT
from tests.pages import blocks

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")


def test_its_commands_are_targets_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [line for block in blocks("README.md", "sh") for line in block.text.splitlines()]
    assert lines
    for line in lines:
        make, target, *_ = line.split()
        assert make == "make"
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def cells(table: str) -> list[list[str]]:
    """Return the cells of a table's rows, without its heading."""
    rows = [row.split("|")[1:-1] for row in table.splitlines() if row.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_its_figures_are_those_of_the_page() -> None:
    _, _, section = README.partition("## Figures")
    for what, _, values in cells(section.partition("\n\n## ")[0]):
        for value in re.findall(r"\d+(?:\.\d+)?", values):
            assert re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.]*\d)", FIGURES), (what, value)


def test_figures_of_the_broker_are_those_of_its_page() -> None:
    page = (ROOT / "docs" / "broker.md").read_text(encoding="utf-8")
    table = page[page.index("| | kafkawire | librdkafka's mock |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    means = cells.pop()
    start_up = cells.pop(0)
    assert f"| {start_up[5]} / {start_up[4]} |" in FIGURES
    for column in (4, 5):
        ratios = [float(row[column]) for row in cells]
        assert abs(geometric_mean(ratios) - float(means[column])) < 0.01
        shown = f"| {means[column]}; {min(ratios):.2g} (", f" to {max(ratios):.2g} ("
        assert any(all(part in line for part in shown) for line in FIGURES.splitlines())
