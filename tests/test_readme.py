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


def test_a_stranger_finds_what_it_is_for_whom_and_beside_what() -> None:
    first, *sections = re.split(r"^## (?=\S)", README, flags=re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    order = ["Set up", "In Python", "Beside other tools", "Figures", "Documentation"]
    assert titles == order
    assert first.startswith("# kafkawire\n\nFrom a capture, a log directory or a live cluster ")
    texts = dict(zip(titles, sections, strict=True))
    tools = [row[0].split()[0] for row in cells(texts["Beside other tools"])]
    assert tools == ["tshark", "kcat", "kfake", "kio", "aiokafka"]
    assert len(cells(texts["Figures"])) == 5
    assert "kafkawire groups" in texts["Set up"]
    assert re.search(r"!\[kafkawire report.*\]\(docs/images/report\.png\)", texts["Set up"])


def test_the_pages_of_the_repository_are_there() -> None:
    for page in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md"):
        assert f"]({page})" in README
        assert (ROOT / page).is_file()
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "\n## A release\n" in contributing
