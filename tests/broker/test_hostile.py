"""What hostile peers send: a clear reason or an error, bounded memory, others undisturbed."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

import kafkawire
from kafkawire import REGISTRY
from kafkawire.broker import Drained
from kafkawire.broker.bounds import BACKLOG, UNSENT
from kafkawire.broker.handlers import HANDLERS
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse

from ..real.requests import Known, filled
from .fetches import fetch_of, fetched
from .scene import Client, Scene, metadata
from .test_log import batch, produce

KNOWN = Known("t")
FRAMES = [
    kafkawire.encode_frame(
        filled(REGISTRY.request(key).name, version, KNOWN),  # type: ignore[union-attr]
        version,
        7,
        client_id="hostile",
    )
    for key in HANDLERS
    for version in {REGISTRY.request(key).first, REGISTRY.request(key).last}  # type: ignore[union-attr]
]


def undisturbed(other: Client) -> None:
    """Whether somebody else is served as ever."""
    assert metadata(other, "t").topics[0].error_code == 0
    assert produce(other, batch(b"a")).error_code == 0


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    scene = Scene(topics={"t": 1})
    other, hostile = scene.client(), scene.client()
    hostile.sends_bytes(data)
    hostile.sends_bytes(len(data).to_bytes(4, "big") + data)
    undisturbed(other)


def test_every_frame_cut_anywhere_and_damaged_anywhere() -> None:
    scene = Scene(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "0"})
    other = scene.client()
    chance = random.Random(7)
    for frame in FRAMES:
        body = frame[4:]
        for end in sorted({chance.randrange(len(body)) for _ in range(12)}):
            scene.client().sends_bytes(end.to_bytes(4, "big") + body[:end])
        for _ in range(12):
            at = chance.randrange(8, len(body))
            spoilt = body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
            scene.client().sends_bytes(frame[:4] + spoilt)
    scene.passes(700)
    undisturbed(scene.client())
    assert other.closed == "nothing came for connections.max.idle.ms"


def test_a_frame_byte_by_byte_is_a_frame() -> None:
    scene = Scene(topics={"t": 1})
    client = scene.client()
    frame = kafkawire.encode_frame(MetadataRequest(topics=None), 9, 3, client_id="slow")
    client.asked.append((3, 9, 3))
    for at in range(len(frame)):
        assert client.frame() is None
        client.sends_bytes(frame[at : at + 1])
    client.gets(MetadataResponse)


def test_giant_and_negative_sizes_close_at_once() -> None:
    for size, reason in ((0x7FFFFFFF, "socket.request.max.bytes"), (-1, "-1 bytes")):
        scene = Scene()
        client = scene.client()
        client.sends_bytes(size.to_bytes(4, "big", signed=True))
        assert client.closed is not None
        assert reason in client.closed
        client.sends_bytes(b"x" * 1000)
        assert not scene.cluster.connections[client.number].buffer
        assert scene.cluster.connections.buffered == 0


def test_who_does_not_read_is_not_answered_on_and_on() -> None:
    """It costs what may be unsent and one answer, and of its requests what is allowed to wait."""
    scene = Scene(topics={"t": 1})
    for _ in range(20):
        produce(scene.client(), batch(b"x" * 900_000))
    greedy = scene.client()
    scene.deaf.add(greedy.number)  # it reads nothing, so nobody says `Drained`
    limit = 900_000
    sent = 0
    while scene.cluster.may_read(greedy.number):
        greedy.sends(fetch_of(greedy, max_bytes=limit, partition_max_bytes=limit), 12)
        sent += 1
        assert sent < 100_000, "its requests are read on and on"
    held = scene.cluster.connections[greedy.number]
    assert sent > 100
    assert len(greedy.received) <= UNSENT + 2 * limit
    assert len(held.buffer) <= BACKLOG + 200
    undisturbed(scene.client())
    scene.deaf.clear()
    scene.happens(Drained(greedy.number))
    for _ in range(sent):  # and once it reads, it has them all, in order
        greedy.gets(FetchResponse)
        scene.happens(Drained(greedy.number))
    assert scene.cluster.may_read(greedy.number)


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(FRAMES) - 1), min_size=1, max_size=25))
def test_requests_in_any_order_are_answered_once_in_order_or_parked(order: list[int]) -> None:
    """SyncGroup before JoinGroup, epochs of sessions that there are not, tokens of nobody."""
    scene = Scene(topics={"t": 1}, settings={"group.initial.rebalance.delay.ms": "0"})
    other, hostile = scene.client(), scene.client()
    owed = range(len(order))  # no frame here is a Produce with acks=0
    for number, which in enumerate(order):
        frame = FRAMES[which]
        hostile.sends_bytes(frame[:8] + number.to_bytes(4, "big") + frame[12:])
    got = []
    while (answer := hostile.frame()) is not None:
        got.append(int.from_bytes(answer[4:8], "big"))
    assert got == [*owed[: len(got)]]
    if len(got) < len(owed) and hostile.closed is None:
        [parked] = [
            request
            for request in scene.cluster.serving.pending.values()
            if request.connection == hostile.number
        ]
        assert parked.correlation_id == owed[len(got)]
    undisturbed(other)


def test_requests_do_not_pile_up_behind_one_that_waits() -> None:
    scene = Scene(topics={"t": 1})
    client = scene.client()
    client.sends(fetch_of(client, max_wait_ms=30_000, min_bytes=1), 12)
    assert scene.cluster.may_read(client.number)
    while scene.cluster.may_read(client.number):
        client.sends(MetadataRequest(topics=None), 9)
    assert len(scene.cluster.connections[client.number].buffer) < (1 << 17)
    produce(scene.client(), batch(b"a"))
    assert scene.cluster.may_read(client.number)
    assert fetched(scene.client()) != b""


def test_silence_is_ended() -> None:
    scene = Scene(settings={"connections.max.idle.ms": "1000"})
    client = scene.client()
    scene.passes(0.9)
    client.sends_bytes(b"\0")
    scene.passes(0.9)
    assert client.closed is None
    scene.passes(0.2)
    assert client.closed == "a request was not complete after connections.max.idle.ms"
