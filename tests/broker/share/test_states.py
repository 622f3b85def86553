"""The states of records of share partitions: total, legal, and drawn."""

from __future__ import annotations

from itertools import product

import pytest

from kafkawire.broker.share.in_flight import Run
from kafkawire.broker.share.states import (
    LEGAL,
    TERMINAL,
    TRANSITIONS,
    TRIGGERS,
    AcknowledgeType,
    RecordState,
    Trigger,
    diagram,
)

from ...conftest import ROOT

S = RecordState


def test_every_state_has_a_result_for_every_trigger() -> None:
    assert set(TRANSITIONS) == set(product(RecordState, Trigger))
    assert set(TRIGGERS) == set(AcknowledgeType)


@pytest.mark.parametrize(("state", "trigger"), list(product(RecordState, Trigger)))
def test_a_state_changes_only_as_is_legal(state: RecordState, trigger: Trigger) -> None:
    run = Run(0, 0, state, 1, "m", 5.0)
    if (state, trigger) in LEGAL:
        run.change(trigger)
        assert run.state is LEGAL[state, trigger]
        assert (run.member_id == "m") == (run.state is S.ACQUIRED)
    else:
        with pytest.raises(AssertionError, match="not a legal transition"):
            run.change(trigger)
        assert run.state is state


def test_nothing_leaves_a_terminal_state_and_all_are_reached() -> None:
    assert not {state for state, _ in LEGAL} & TERMINAL
    assert set(LEGAL.values()) == set(RecordState)


def test_a_change_that_cannot_be_stored_is_undone() -> None:
    run = Run(0, 3, S.ACQUIRED, 2, "m", 5.0)
    run.change(Trigger.ACCEPT, 7)
    assert (run.state, run.member_id, run.is_complete) == (S.ACKNOWLEDGED, "", False)
    run.settle(is_stored=False)
    assert run == Run(0, 3, S.ACQUIRED, 2, "m", 5.0)


def test_the_states_are_drawn() -> None:
    page = (ROOT / "docs" / "broker.md").read_text("utf-8")
    assert "\n".join(["```mermaid", *diagram(), "```"]) in page
