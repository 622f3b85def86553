"""The page draws the consumer's machines as the tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from kafkawire.client.consumer.group import member_states
from kafkawire.client.consumer.group.member_states import TABLE
from kafkawire.client.consumer.offsets import partition_state as places
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "client.md"


@pytest.mark.parametrize("legal", [member_states.LEGAL, places.LEGAL])
def test_states(legal: Mapping[Any, frozenset[Any]]) -> None:
    rows = [f"    {a.value} --> {b.value}" for a, after in legal.items() for b in after]
    assert all(isinstance(state, Enum) for state in legal)
    drawn = "```mermaid\nstateDiagram-v2\n" + "\n".join(sorted(rows)) + "\n```"
    assert drawn in PAGE.read_text(encoding="utf-8")


def test_events() -> None:
    assert TABLE in PAGE.read_text(encoding="utf-8")
