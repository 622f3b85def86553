"""What it takes to start a broker for a test."""

from __future__ import annotations

import asyncio

from kafkawire.net.server import Server
from tests.calls import calls


async def started_and_stopped() -> None:
    async with Server():
        pass


def test_a_broker_starts_and_stops_in_few_calls() -> None:
    """A broker in memory: 5,400 with Python 3.11, a millisecond or two."""
    for _ in range(2):  # what is imported and computed once is there
        asyncio.run(started_and_stopped())
    assert calls(lambda: asyncio.run(started_and_stopped())) <= 5_700
