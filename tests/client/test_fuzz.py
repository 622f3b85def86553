"""Hostile brokers: responses that are damaged, or say nonsense, whatever the client has requested.

A client's machines raise nothing, and do not send more than their backoff allows.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from kafkawire import EncodeError, Message
from kafkawire.broker.network import request_channel
from kafkawire.broker.request import Request
from kafkawire.client.config import Setting
from kafkawire.client.producer import Flush, Send
from kafkawire.protocol import encode_frame

from ..broker.requests import varied
from ..fuzzing import mutate, replayable, seeds
from . import checker
from .clients import producer_client
from .conditions import NetworkConditions
from .consumer.test_scenarios import config, simulation, write
from .consumer.users import User
from .simulation import Simulation

SECONDS = 20.0
MOST = 3_000
"""Responses in that time: a backoff of at least 0.1 s, on a few connections, with some to spare."""


class Hostile:
    """Encodes responses to clients, every second one damaged or with nonsense in it."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng = Random(seed)
        self.sent = 0
        self._encode = request_channel._encode
        monkeypatch.setattr(request_channel, "_encode", self.encode)
        # who is lied to about versions asks for what the broker does not take
        monkeypatch.setattr(checker, "BLAMELESS", "")
        # and the responses that the checker reads are not the broker's own words
        monkeypatch.setattr(checker.TrafficChecker, "_fetched", lambda *_: None)

    def encode(self, message: Message, request: Request) -> list[bytes]:
        good = self._encode(message, request)
        if request.connection < 0:  # of another node
            return good
        self.sent += 1
        choice = self.rng.random()
        if choice < 0.5:
            return good
        if choice < 0.8:
            try:
                nonsense = varied(message, request.version, self.rng)
                return [encode_frame(nonsense, request.version, request.correlation_id)]
            except EncodeError:
                return good
        frame = b"".join(good)
        body = frame[4:8] + mutate(frame[8:], self.rng)
        return [len(body).to_bytes(4, "big"), body]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(25))
def test_a_producer_survives_any_response(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = Hostile(seed, monkeypatch)
    with replayable(seed):
        it = Simulation(seed, brokers=2, conditions=NetworkConditions(0.001, 0.0, 0.0))
        it.create("t", [[1], [2]])
        values: dict[str, Setting] = {
            "linger.ms": 5,
            "request.timeout.ms": 2_000,
            "delivery.timeout.ms": 5_000,
        }
        it.add("p", producer_client(Random(seed), it.bootstrap, values))
        for token in range(40):
            it.at(token * 0.2, partial(it.send_event, "p", record(token)))
        it.at(9.0, partial(it.send_event, "p", Flush("end")))
        it.pass_time(SECONDS)
        assert 0 < hostile.sent < MOST


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(25))
def test_a_member_of_a_group_survives_any_response(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = simulation()
    write(it, 5, 3)
    hostile = Hostile(seed, monkeypatch)
    with replayable(seed):
        user = User(it, "one", config())
        user.subscribe("orders")
        it.pass_time(SECONDS)
        assert 0 < hostile.sent < MOST


def record(token: int) -> Send:
    return Send(token, "t", None, b"%d" % token, b"v", 1_700_000_000_000)
