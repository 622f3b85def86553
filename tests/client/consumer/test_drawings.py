"""docs/client.md shows the state machines of the consumer as the tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from kafkawire.client.consumer.consumer_group import member_states as consumer_group_states
from kafkawire.client.consumer.consumer_group import membership as consumer_group_membership
from kafkawire.client.consumer.consumer_group.recovery import OF_JOIN, RECOVERY, Recovery
from kafkawire.client.consumer.group import member_states, membership
from kafkawire.client.consumer.offsets import partition_state
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "client.md"


@pytest.mark.parametrize(
    "legal", [member_states.LEGAL, consumer_group_states.LEGAL, partition_state.LEGAL]
)
def test_states(legal: Mapping[Any, frozenset[Any]]) -> None:
    rows = [f"    {a.value} --> {b.value}" for a, after in legal.items() for b in after]
    assert all(isinstance(state, Enum) for state in legal)
    drawn = "```mermaid\nstateDiagram-v2\n" + "\n".join(sorted(rows)) + "\n```"
    assert drawn in PAGE.read_text(encoding="utf-8")


def handlers_table(handlers: Mapping[type, Mapping[Any, Any]]) -> str:
    """Render the handlers of a membership as a Markdown table."""
    lines = ["| event | state | handler |", "| --- | --- | --- |"]
    for event, row in handlers.items():
        states: dict[str, list[str]] = {}
        for state, handler in row.items():
            states.setdefault(handler.__name__.lstrip("_"), []).append(state.value)
        states.pop("ignore", None)
        for name, values in states.items():
            where = "any" if len(values) == len(row) else ", ".join(values)
            lines.append(f"| {event.__name__} | {where} | {name} |")
    return "\n".join(lines)


@pytest.mark.parametrize("module", [membership, consumer_group_membership])
def test_events(module: Any) -> None:
    assert handlers_table(module.HANDLERS) in PAGE.read_text(encoding="utf-8")


def recovery_table() -> str:
    """Render the recovery of a member of `group.protocol=consumer` as a Markdown table."""
    lines = ["| recovery | error codes |", "| --- | --- |"]
    for each in Recovery:
        codes = ", ".join(code.name for code, action in RECOVERY.items() if action is each)
        joining = [code.name for code in RECOVERY if OF_JOIN[code] is each is not RECOVERY[code]]
        others = f"all others; of a heartbeat that joins {', '.join(joining)}" if joining else codes
        lines.append(f"| {each.value} | {others} |")
    return "\n".join(lines)


def test_recovery() -> None:
    assert recovery_table() in PAGE.read_text(encoding="utf-8")
