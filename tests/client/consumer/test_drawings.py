"""docs/client.md shows the state machines of the consumer as the tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from kafkawire.client.consumer.group import member_states, membership
from kafkawire.client.consumer.offsets import partition_state
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "client.md"


@pytest.mark.parametrize("legal", [member_states.LEGAL, partition_state.LEGAL])
def test_states(legal: Mapping[Any, frozenset[Any]]) -> None:
    rows = [f"    {a.value} --> {b.value}" for a, after in legal.items() for b in after]
    assert all(isinstance(state, Enum) for state in legal)
    drawn = "```mermaid\nstateDiagram-v2\n" + "\n".join(sorted(rows)) + "\n```"
    assert drawn in PAGE.read_text(encoding="utf-8")


def handlers_table() -> str:
    """Render `membership.HANDLERS` as a Markdown table."""
    lines = ["| event | state | handler |", "| --- | --- | --- |"]
    for event, row in membership.HANDLERS.items():
        states: dict[str, list[str]] = {}
        for state, handler in row.items():
            states.setdefault(handler.__name__.lstrip("_"), []).append(state.value)
        states.pop("ignore", None)
        for name, values in states.items():
            where = "any" if len(values) == len(row) else ", ".join(values)
            lines.append(f"| {event.__name__} | {where} | {name} |")
    return "\n".join(lines)


def test_events() -> None:
    assert handlers_table() in PAGE.read_text(encoding="utf-8")
