"""The drawings of the page are the tables of the code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from kafkawire.replication import ISR_TRANSITIONS, REPLICA_TRANSITIONS, IsrState, ReplicaState

from ..conftest import ROOT

PAGE = (ROOT / "docs" / "internals" / "cluster.md").read_text(encoding="utf-8")


def drawn(table: Mapping[tuple[Any, Any], Any]) -> str:
    """Draw a table; a trigger that leads from all states to one is drawn once."""
    rows = [
        f"    {here.value} --> {there.value}: {trigger.value}"
        for (here, trigger), there in table.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *sorted(rows), "```"])


@pytest.mark.parametrize("table", [REPLICA_TRANSITIONS, ISR_TRANSITIONS], ids=["replica", "isr"])
def test_states_are_drawn(table: Mapping[tuple[Any, Any], Any]) -> None:
    """Of docs/internals/cluster.md."""
    assert drawn(table) in PAGE, drawn(table)


@pytest.mark.parametrize("states", [ReplicaState, IsrState])
def test_every_state_is_described(states: type[Enum]) -> None:
    for state in states:
        assert f"| {state.value} |" in PAGE
