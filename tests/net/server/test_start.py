"""What it takes to start a broker for a test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkawire.net.nodes import server as node_server
from kafkawire.net.nodes.server import NodeServer
from kafkawire.net.nodes.start import NodeOptions, prepare
from kafkawire.net.server import Server
from tests.calls import calls


async def started_and_stopped() -> None:
    async with Server():
        pass


def test_a_broker_starts_and_stops_in_few_calls() -> None:
    """A broker in memory: 4,500 with Python 3.11, 4,300 with 3.14, a millisecond or two."""
    for _ in range(2):  # what is imported and computed once is there
        asyncio.run(started_and_stopped())
    assert calls(lambda: asyncio.run(started_and_stopped())) <= 4_800


def test_the_clock_of_a_node_begins_with_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with its configuration: before it, the node opens directories and imports modules."""
    prepared = prepare(NodeOptions(None, (tmp_path,)), lambda: bytes(range(16)))
    monkeypatch.setattr(node_server, "epoch_ms", lambda: 1_000_000)

    async def started() -> int:
        server = NodeServer(prepared.config, prepared.disks, prepared.sockets)
        try:
            return server.front.config.wall_ms(0.0)
        finally:
            await server.close()

    with prepared.resources:
        assert asyncio.run(started()) == 1_000_000
