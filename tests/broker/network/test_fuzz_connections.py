"""Fuzz target: connections that send anything, cut anywhere, in any order, and that vanish.

What they buffer is bounded by what the machine says of it, and a client that behaves has its
response in the very call in which its request comes.
"""

from __future__ import annotations

import random

import pytest

import kafkawire
from kafkawire.broker import Disconnected, Drained, Received, Reply
from kafkawire.broker.bounds import BACKLOG, UNSENT
from kafkawire.messages.metadata_request import MetadataRequest
from tests.broker.harness import Client, Harness
from tests.broker.test_hostile import FRAMES, undisturbed
from tests.fuzzing import EXTREMES, mutate, replayable, seeds

STEPS = 150
LARGEST_REQUEST, BUFFERED = 50_000, 200_000
CHUNK = 20_000
SETTINGS = {
    "connections.max.idle.ms": "5000",
    "group.initial.rebalance.delay.ms": "0",
    "max.connections": "40",
    "queued.max.request.bytes": str(BUFFERED),
    "socket.request.max.bytes": str(LARGEST_REQUEST),
}


class Hostile:
    """Connections that do what `rng` says."""

    def __init__(self, harness: Harness, rng: random.Random) -> None:
        self.harness = harness
        self.rng = rng
        self.open: list[Client] = []

    def step(self) -> None:
        self.open = [each for each in self.open if each.closed is None]
        if not self.open or self.rng.random() < 0.1:
            self.open.append(self.harness.client())
            return
        client = self.rng.choice(self.open)
        self.rng.choice(
            (self.garbage, self.size, self.part, self.mutated, self.burst, self.deafen, self.leave)
        )(client)

    def send(self, client: Client, data: bytes) -> None:
        connection = self.harness.server().connections.find(client.number)
        while data and connection is not None and not connection.paused:  # as a shell does
            client.send_bytes(data[:CHUNK])
            data = data[CHUNK:]

    def garbage(self, client: Client) -> None:
        self.send(client, self.rng.randbytes(self.rng.choice((1, 3, 100, CHUNK))))

    def size(self, client: Client) -> None:
        size = self.rng.choice((*EXTREMES, LARGEST_REQUEST, LARGEST_REQUEST + 1)) & 0xFFFFFFFF
        self.send(client, size.to_bytes(4, "big") + self.rng.randbytes(self.rng.randrange(9)))

    def part(self, client: Client) -> None:
        frame = self.rng.choice(FRAMES)
        self.send(client, frame[: self.rng.randrange(len(frame))])

    def mutated(self, client: Client) -> None:
        body = mutate(self.rng.choice(FRAMES)[4:], self.rng)
        self.send(client, len(body).to_bytes(4, "big") + body)

    def burst(self, client: Client) -> None:
        self.send(client, self.rng.choice(FRAMES) * self.rng.randrange(1, 300))

    def deafen(self, client: Client) -> None:
        if client.number in self.harness.not_draining:
            self.harness.not_draining.discard(client.number)
            self.harness.handle(Drained(client.number))
        else:
            self.harness.not_draining.add(client.number)

    def leave(self, client: Client) -> None:
        self.open.remove(client)
        client.disconnect()


def bounded(harness: Harness) -> None:
    """Check that buffers are within the limits of the settings."""
    connections = harness.server().connections
    held = [len(each.buffer) for each in connections.values()]
    assert connections.buffered == sum(held) <= BUFFERED
    assert max(held, default=0) <= max(LARGEST_REQUEST, BACKLOG) + CHUNK + 4
    for each in connections.values():
        assert each.unsent <= UNSENT + 2 * UNSENT
        assert not (each.closing and each.buffer)
    assert sum(not each.closing for each in connections.values()) <= 40


def served_at_once(harness: Harness, client: Client, number: int) -> None:
    """Whether a request gets its response in the call that delivers it."""
    frame = kafkawire.encode_frame(MetadataRequest(topics=[]), 9, number, client_id="good")
    effects = harness.cluster.handle(Received(client.number, frame), harness.now)
    mine = [
        each for each in effects if isinstance(each, Reply) and each.connection == client.number
    ]
    assert [each.data[4:8] for each in mine] == [number.to_bytes(4, "big")]
    harness._take(effects)
    client.received.clear()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(8))
def test_connections_that_do_anything(seed: int) -> None:
    rng = random.Random(seed)
    harness = Harness(topics={"t": 1}, settings=SETTINGS)
    good, hostile = harness.client(), Hostile(harness, rng)
    with replayable(seed):
        for number in range(STEPS):
            hostile.step()
            for client in harness.clients.values():  # the shell disconnects whom the machine closes
                if client.closed is not None and client.number in harness.server().connections:
                    harness.handle(Disconnected(client.number))
            bounded(harness)
            served_at_once(harness, good, number)
            if number % 10 == 0:
                undisturbed(good)
                harness.advance(rng.choice((0.0, 0.4, 1.0)))
        for client in hostile.open:
            client.disconnect()
        bounded(harness)
        assert [*harness.server().connections] == [good.number]
        assert not harness.broker().channel.pending
        assert harness.server().connections.buffered == 0
        undisturbed(good)
