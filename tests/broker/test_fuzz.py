"""Random requests of every API and version: one response each, or a reason and a closed connection.

Whatever one client sends, others are served, and nothing in the broker raises what it does not
expect (`conftest.no_unexpected_errors`).
"""

from __future__ import annotations

import random
from typing import Final

import pytest

import kafkawire
from kafkawire import EncodeError, Message
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.produce_request import ProduceRequest

from ..fuzzing import mutate, replayable, seeds
from .handlers.test_every_version import CASES, TOPIC, lived_in, not_served, request_of
from .harness import Client, Harness
from .requests import chosen, variations, varied

ALL_CASES: Final = [*CASES, *not_served()]
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0", "connections.max.idle.ms": "-1"}
PASSWORDS: Final = {"alice": "alice-secret"}
REQUESTS: Final = 60


def fresh(seed: int, with_sasl: bool) -> Harness:
    more = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"} if with_sasl else {}
    harness = Harness(topics={TOPIC: 1}, settings=SETTINGS | more, passwords=PASSWORDS, seed=seed)
    if not with_sasl:
        lived_in(harness)
    return harness


def alive(harness: Harness) -> bool:
    """Whether a client that connects now is served."""
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    return harness.client().exchange(request, 3, ApiVersionsResponse).error_code == 0


def send(
    client: Client, request: Message, version: int, rng: random.Random, damage: float = 0.4
) -> bool:
    """Send a request, damaged or not, if it can be written; whether it must come to an end."""
    try:
        frame = kafkawire.encode_frame(request, version, 7, client_id=rng.choice(("c", None)))
    except EncodeError:
        return False
    damaged = rng.random() < damage
    if damaged:
        body = frame[4:12] + mutate(frame[12:], rng)
        frame = len(body).to_bytes(4, "big") + body
    client.send_bytes(frame)
    # who damages a Produce does not know whether its acks are still not 0
    return not isinstance(request, ProduceRequest) or (not damaged and request.acks != 0)


def check_end(client: Client) -> None:
    """Check that a request has one response, or a closed connection, or is delayed."""
    if client.closed is not None:
        assert client.closed
        client.disconnect()
    frame, pending = client.frame(), client.harness.broker().channel.pending.values()
    delayed = [each for each in pending if each.connection == client.number]
    if client.closed is None:
        assert (frame is not None) + len(delayed) == 1, (frame, delayed)
    else:
        assert not delayed
    assert client.frame() is None, "a second response"


@pytest.mark.fuzz
@pytest.mark.parametrize("with_sasl", [False, True], ids=["open", "sasl"])
@pytest.mark.parametrize("seed", seeds(12))
def test_every_request_comes_to_an_end(seed: int, with_sasl: bool) -> None:
    with replayable(seed):
        rng = random.Random(seed)
        harness = fresh(seed, with_sasl)
        for _ in range(REQUESTS):
            name, version = chosen(ALL_CASES, rng)
            request = varied(request_of(name, version, harness), version, rng)
            client = harness.client()
            must_end = send(client, request, version, rng)
            harness.advance(0.1)
            if must_end:
                check_end(client)
            if harness.topic(TOPIC) is None:
                harness.create_topic(TOPIC)
        harness.advance(400.0)
        assert alive(harness)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted({name for name, _ in ALL_CASES}))
def test_null_empty_and_extreme_values_one_at_a_time(name: str) -> None:
    """Every field of every version; nulls wherever the schema allows them."""
    harness = fresh(1, with_sasl=False)
    rng = random.Random(1)
    for version in [each for known, each in ALL_CASES if known == name]:
        for change in variations(request_of(name, version, harness), version):
            request = request_of(name, version, harness)
            change(request)
            client = harness.client()
            if send(client, request, version, rng, damage=0.0):
                harness.advance(0.1)
                check_end(client)
            client.disconnect()
            if harness.topic(TOPIC) is None:
                harness.create_topic(TOPIC)
    assert alive(harness)
