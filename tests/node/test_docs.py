"""The drawing of the page is the table of the code."""

from __future__ import annotations

from kafkawire.node.lifecycle import diagram

from ..conftest import ROOT


def test_the_life_of_a_broker_is_drawn() -> None:
    page = (ROOT / "docs" / "internals" / "cluster.md").read_text(encoding="utf-8")
    drawn = "\n".join(["```mermaid", *diagram(), "```"])
    assert drawn in page, drawn
