"""The dissector does the same in Lua 5.2 and 5.4, on a small stand-in for Wireshark's interface.

tshark here has Lua 5.2; Wireshark 4.4 and later have 5.4, whose numbers, functions and syntax
differ.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests import golden
from tests.capture.wire import Packet
from tests.capture.written import BROKER, CLIENT, Scenario, request, response

from . import frames
from .test_golden import as_fetched
from .tshark import dissector

lua52, lua54 = import_module("lupa.lua52"), import_module("lupa.lua54")
API: Final = Path(__file__).with_name("wireshark_api.lua")
HEADERS: Final = 54
PORT: Final = slice(36, 38)


class Lua:
    """A Lua of one version that has loaded the dissector."""

    def __init__(self, version: Any) -> None:
        self.runtime = version.LuaRuntime(encoding=None)
        self.runtime.execute(API.read_bytes())
        self.runtime.execute(dissector().read_bytes())

    def items(self, packets: list[Packet]) -> list[bytes]:
        """Dissect the packets that carry data; a line for each item."""
        lua = self.runtime.globals()
        for number, packet in enumerate(packets):
            data = packet.data[HEADERS:]
            if data:
                to_broker = int.from_bytes(packet.data[PORT], "big") == 9092
                assert lua.dissect(data, number, to_broker) == len(data)
        return list(lua.LINES.values())


def both(scenario: Scenario) -> list[bytes]:
    """Dissect in both versions: the items must be the same."""
    one, other = Lua(lua52).items(scenario.packets), Lua(lua54).items(scenario.packets)
    assert one == other
    return one


def test_golden_messages() -> None:
    scenario = frames.golden_scenario(most=1)[0]
    assert len(both(scenario)) > 20_000


def test_golden_record_batches() -> None:
    scenario = Scenario()
    for number, row in enumerate(golden.rows("record_batches")):
        as_fetched(scenario, number, bytes.fromhex(row["hex"]))
    lines = both(scenario)
    assert sum(line.startswith(b"kafkawire.record_value ") for line in lines) > 300


@pytest.mark.parametrize("version", [lua52, lua54], ids=["5.2", "5.4"])
def test_items_have_the_values_of_the_message(version: Any) -> None:
    scenario = Scenario().send(CLIENT, request("Heartbeat", 3, 7, groupId="g"))
    scenario.send(BROKER, response("Heartbeat", 3, 7, errorCode=27))
    lines = Lua(version).items(scenario.packets)
    assert b"kafkawire.correlation_id 8+4 \0\0\0\7" in lines
    assert b"kafkawire.heartbeat.group_id 22+1 g" in lines
    assert b"kafkawire.error 0+0 27" in lines
