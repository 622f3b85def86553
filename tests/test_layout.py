"""The layout of the tree: imports go one way."""

from __future__ import annotations

from tests import layout


def test_imports_have_no_circles() -> None:
    assert layout.circles(late=False) == []


def test_the_architecture_names_every_folder() -> None:
    page = (layout.ROOT / "ARCHITECTURE.md").read_text("utf-8")
    missing = [each for each in layout.folders() if f"{each.rpartition('/')[2]}/" not in page]
    assert missing == []
