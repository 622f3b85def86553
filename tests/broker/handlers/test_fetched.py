"""Fetch responses whose batches are sent from the log."""

from __future__ import annotations

import pytest

from kafkawire.broker import Action, Fault, Reply, Report
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.produce_response import ProduceResponse
from tests.broker.fetches import fetch_of, fetched
from tests.broker.harness import Client, Harness
from tests.broker.log.test_log import batch, produce_request

VALUE = bytes(range(256)) * 200
"""A record whose batch is joined with others, but not copied with two more."""


def filled(count: int, value: bytes = VALUE) -> tuple[Harness, Client]:
    """A topic with that many batches."""
    harness = Harness()
    harness.create_topic("t")
    client = harness.client()
    for _ in range(count):
        client.exchange(produce_request(batch(value)), 9, ProduceResponse)
    harness.effects.clear()
    return harness, client


@pytest.mark.parametrize("version", [4, 9, 10, 12, 17])
def test_a_fetch_sends_the_stored_batches_as_they_are(version: int) -> None:
    harness, client = filled(5)
    log = harness.replica("t").log
    records = fetched(client, version=version)
    assert records == log.read(0, 1 << 30, log.log_end_offset, True)
    [report] = [each for each in harness.effects if isinstance(each, Report)]
    [reply] = [each for each in harness.effects if isinstance(each, Reply)]
    if version >= 10:
        assert records in reply.buffers, "they are not copied into the frame"
        assert sum(map(len, reply.buffers)) - len(records) < 200
    assert isinstance(report.response, FetchResponse)
    assert report.response.responses[0].partitions[0].records == records


def test_small_batches_are_joined() -> None:
    harness, client = filled(5, b"small")
    fetched(client)
    [reply] = [each for each in harness.effects if isinstance(each, Reply)]
    assert len(reply.buffers) == 1


def test_faults_affect_responses_in_parts() -> None:
    harness, client = filled(3)
    whole = fetched(client)
    harness.faults[:] = [Fault("Fetch", nth=1, action=Action.DELAY, delay=5.0)]
    client.send(fetch_of(client), 12)
    assert client.response() is None
    harness.advance(5.0)
    late = client.receive(FetchResponse)
    assert late.responses[0].partitions[0].records == whole
    harness.faults[:] = [Fault("Fetch", action=Action.TRUNCATE, keep=60_000)]
    client.send(fetch_of(client), 12)
    assert len(client.received) == 60_000
