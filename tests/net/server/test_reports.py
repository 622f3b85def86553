"""Requests are reported only to who observes them."""

from __future__ import annotations

import asyncio

import pytest

import kafkawire
from kafkawire.broker import Connected, Received, Reply, Report
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.net.brokers.shell import Observers
from kafkawire.net.server import Server

CONNECTION = 1_000_000


@pytest.mark.parametrize("is_observed", [True, False])
def test_requests_are_reported_to_an_observer(is_observed: bool) -> None:
    async def effects() -> list[type]:
        reports: list[Report] = []
        observers = Observers(on_report=reports.append if is_observed else None)
        async with Server(observers=observers) as server:
            machine, listener = server.machine, server.listeners[0].name
            machine.handle(Connected(CONNECTION, 1, "localhost", listener), server.now())
            request = kafkawire.encode_frame(MetadataRequest(topics=[]), 9, 1, client_id="c")
            return list(map(type, machine.handle(Received(CONNECTION, request), server.now())))

    assert asyncio.run(effects()) == ([Report, Reply] if is_observed else [Reply])
