"""The drawing of the page is the table of the code."""

from __future__ import annotations

from kafkawire.transactions.states import diagram

from ..conftest import ROOT


def test_the_states_of_a_transaction_are_drawn() -> None:
    page = (ROOT / "docs" / "internals" / "cluster.md").read_text(encoding="utf-8")
    drawn = "\n".join(["```mermaid", *diagram(), "```"])
    assert drawn in page, drawn
