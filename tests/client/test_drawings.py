"""The state diagrams in the docs match the tables in the code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

import pytest

from kafkawire.client.network.connection_states import LEGAL as CONNECTION
from kafkawire.client.producer.producer_id import LEGAL as IDENTITY
from tests.conftest import ROOT

E = TypeVar("E", bound=Enum)


def drawn(legal: Mapping[E, frozenset[E]]) -> str:
    lines = sorted(
        f"    {before.value} --> {after.value}" for before in legal for after in legal[before]
    )
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


@pytest.mark.parametrize("legal", [CONNECTION, IDENTITY], ids=["connection", "identity"])
def test_state_diagrams_in_the_docs_match_the_tables(legal: Mapping[E, frozenset[E]]) -> None:
    assert drawn(legal) in (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
