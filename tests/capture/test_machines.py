"""How the machines of a capture are driven: one `handle` each."""

from __future__ import annotations

import pytest

from kafkawire.capture.engine import Engine
from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.tcp.reassembly import Reassembler

ENTRY_POINTS: dict[type, set[str]] = {
    Reassembler: {"handle"},
    Conversation: {"handle"},
    Engine: {"handle"},
}
OTHERS: dict[type, set[str]] = {Engine: {"restore", "snapshot"}}


@pytest.mark.parametrize("machine", ENTRY_POINTS)
def test_the_entry_points_of_a_machine(machine: type) -> None:
    called = {
        name
        for name, value in vars(machine).items()
        if callable(value) and not name.startswith("_")
    }
    assert called - OTHERS.get(machine, set()) == ENTRY_POINTS[machine]
