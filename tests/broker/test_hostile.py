"""What hostile peers send: a clear reason or an error, bounded memory, others undisturbed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafkawire
from kafkawire import REGISTRY
from kafkawire.broker import Drained
from kafkawire.broker.apis import Listener, served_on, supported_apis
from kafkawire.broker.bounds import BACKLOG, UNSENT
from kafkawire.broker.releases import ALL
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from tests.fuzzing import examples

from ..real.requests import Known, filled
from .fetches import fetch_of, fetched
from .harness import Client, Harness, metadata
from .log.test_log import batch, produce

KNOWN = Known("t")
FRAMES = [
    kafkawire.encode_frame(
        filled(REGISTRY.request(key).name, version, KNOWN),  # type: ignore[union-attr]
        version,
        7,
        client_id="hostile",
    )
    for key, versions in supported_apis(ALL, served_on(Listener.BROKER)).served.items()
    for version in dict.fromkeys(versions)
]


def undisturbed(other: Client) -> None:
    """Check that another client is served as before."""
    assert metadata(other, "t").topics[0].error_code == 0
    assert produce(other, batch(b"a")).error_code == 0


@pytest.mark.fuzz
@settings(max_examples=examples(50))
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    harness = Harness(topics={"t": 1})
    other, hostile = harness.client(), harness.client()
    hostile.send_bytes(data)
    hostile.send_bytes(len(data).to_bytes(4, "big") + data)
    undisturbed(other)


def test_every_frame_cut_anywhere_and_damaged_anywhere() -> None:
    harness = Harness(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "0"})
    other = harness.client()
    chance = random.Random(7)
    for frame in FRAMES:
        body = frame[4:]
        for end in sorted({chance.randrange(len(body)) for _ in range(12)}):
            harness.client().send_bytes(end.to_bytes(4, "big") + body[:end])
        for _ in range(12):
            at = chance.randrange(8, len(body))
            spoilt = body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
            harness.client().send_bytes(frame[:4] + spoilt)
    harness.advance(700)
    undisturbed(harness.client())
    assert other.closed == "no request within connections.max.idle.ms"


def test_a_frame_byte_by_byte_is_a_frame() -> None:
    harness = Harness(topics={"t": 1})
    client = harness.client()
    frame = kafkawire.encode_frame(MetadataRequest(topics=None), 9, 3, client_id="slow")
    client.in_flight.append((3, 9, 3))
    for at in range(len(frame)):
        assert client.frame() is None
        client.send_bytes(frame[at : at + 1])
    client.receive(MetadataResponse)


def test_giant_and_negative_sizes_close_at_once() -> None:
    for size, reason in ((0x7FFFFFFF, "socket.request.max.bytes"), (-1, "invalid frame size -1")):
        harness = Harness()
        client = harness.client()
        client.send_bytes(size.to_bytes(4, "big", signed=True))
        assert client.closed is not None
        assert reason in client.closed
        client.send_bytes(b"x" * 1000)
        assert not harness.server().connections[client.number].buffer
        assert harness.server().connections.buffered == 0


def test_a_client_that_does_not_read_gets_no_more_responses() -> None:
    """It costs what may be unsent and one response, and of its requests what is allowed to wait."""
    harness = Harness(topics={"t": 1})
    for _ in range(20):
        produce(harness.client(), batch(b"x" * 900_000))
    greedy = harness.client()
    harness.not_draining.add(greedy.number)  # it reads nothing, so nobody says `Drained`
    limit = 900_000
    sent = 0
    while harness.server().may_read(greedy.number):
        greedy.send(fetch_of(greedy, max_bytes=limit, partition_max_bytes=limit), 12)
        sent += 1
        assert sent < 100_000, "its requests are read on and on"
    held = harness.server().connections[greedy.number]
    assert sent > 100
    assert len(greedy.received) <= UNSENT + 2 * limit
    assert len(held.buffer) <= BACKLOG + 200
    undisturbed(harness.client())
    harness.not_draining.clear()
    harness.handle(Drained(greedy.number))
    for _ in range(sent):  # and once it reads, it has them all, in order
        greedy.receive(FetchResponse)
        harness.handle(Drained(greedy.number))
    assert harness.server().may_read(greedy.number)


@pytest.mark.fuzz
@settings(max_examples=examples(20))
@given(st.lists(st.integers(0, len(FRAMES) - 1), min_size=1, max_size=25))
def test_requests_in_any_order_get_one_response_in_order_or_are_delayed(order: list[int]) -> None:
    """SyncGroup before JoinGroup, epochs of sessions that there are not, tokens of nobody."""
    harness = Harness(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "0"})
    other, hostile = harness.client(), harness.client()
    expected = range(len(order))  # no frame here is a Produce with acks=0
    for number, which in enumerate(order):
        frame = FRAMES[which]
        hostile.send_bytes(frame[:8] + number.to_bytes(4, "big") + frame[12:])
    got = []
    while (response := hostile.frame()) is not None:
        got.append(int.from_bytes(response[4:8], "big"))
    assert got == [*expected[: len(got)]]
    if len(got) < len(expected) and hostile.closed is None:
        [delayed] = [
            request
            for request in harness.broker().channel.pending.values()
            if request.connection == hostile.number
        ]
        assert delayed.correlation_id == expected[len(got)]
    undisturbed(other)


def test_requests_do_not_pile_up_behind_one_that_waits() -> None:
    harness = Harness(topics={"t": 1})
    client = harness.client()
    client.send(fetch_of(client, max_wait_ms=30_000, min_bytes=1), 12)
    assert harness.server().may_read(client.number)
    while harness.server().may_read(client.number):
        client.send(MetadataRequest(topics=None), 9)
    assert len(harness.server().connections[client.number].buffer) < (1 << 17)
    produce(harness.client(), batch(b"a"))
    assert harness.server().may_read(client.number)
    assert fetched(harness.client()) != b""


def test_idle_connections_are_closed() -> None:
    harness = Harness(settings={"connections.max.idle.ms": "1000"})
    client = harness.client()
    harness.advance(0.9)
    client.send_bytes(b"\0")
    harness.advance(0.9)
    assert client.closed is None
    harness.advance(0.2)
    assert client.closed == "request not complete within connections.max.idle.ms"
