"""The tables of the page are those of the code."""

from __future__ import annotations

from kafkawire.broker.groups.states import ADMISSION, LEGAL, GroupState, Kind

from ..conftest import ROOT

PAGE = (ROOT / "docs" / "broker.md").read_text()


def test_where_a_state_may_go() -> None:
    for state in GroupState:
        targets = ", ".join(each.value for each in GroupState if each in LEGAL[state])
        assert " ".join(f"| {state.value} | {targets} |".split()) + "\n" in PAGE


def test_what_a_member_meets() -> None:
    for kind in Kind:
        answers = [ADMISSION[state][kind] for state in GroupState]
        row = " | ".join(error.name if error else "-" for error in answers)
        assert f"| {kind.value} | {row} |\n" in PAGE
