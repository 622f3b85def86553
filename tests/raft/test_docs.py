"""The diagram of the page is that of the table."""

from __future__ import annotations

from itertools import product

import pytest

from kafkawire.errors import LocalProtocolError
from kafkawire.raft import TRANSITIONS, Cause, State, diagram
from kafkawire.raft.states import next_state

from ..conftest import ROOT

PAGE = (ROOT / "docs" / "internals" / "cluster.md").read_text(encoding="utf-8")


def test_the_states_are_drawn() -> None:
    assert f"```mermaid\n{diagram()}```\n" in PAGE


def test_what_is_not_in_the_table_is_an_error() -> None:
    for state, cause in product(State, Cause):
        if cause in TRANSITIONS[state]:
            assert next_state(state, cause) is TRANSITIONS[state][cause]
        else:
            with pytest.raises(LocalProtocolError, match=state.value):
                next_state(state, cause)
