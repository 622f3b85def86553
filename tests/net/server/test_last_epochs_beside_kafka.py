"""Producers whose epochs are used up, at a real Apache Kafka and at a node: the same responses.

Each producer gets there as in an application: one more begins with its transactional id, 32,766
times. Two of the scenarios are played by `make soak`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import pytest

from kafkawire import decode_frame, encode_frame
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.init_producer_id_response import InitProducerIdResponse
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.server_config import ServerConfig
from kafkawire.transactions.transaction import LAST_EPOCH
from tests.fuzzing import SOAK
from tests.interop.implementations import until

from ...real.broker import Broker
from ...real.wire import Wire
from .transactional import Actor, prepared

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("kafka")]

PIPELINED: Final = 500
"""Requests on their way at a time, on each connection."""
VERSION: Final = 5
BUMPING: Final = 12
"""The version of Produce of transactions whose end has a new epoch."""
TIMEOUT_MS: Final = 60_000
SHORT_MS: Final = 1_000


def rotated(actor: Actor) -> None:
    """Begin anew with the last epoch of a producer id, and again, as if a response was lost."""
    last = mine(actor)
    actor.init(**last)
    actor.init(**last)
    actor.init(**last | {"producer_epoch": LAST_EPOCH - 1})
    actor.state()
    actor.init(**mine(actor))
    actor.init(**last)
    actor.init(**mine(actor))
    actor.init(**last)
    actor.init()
    actor.init(**last)


def aborted(actor: Actor) -> None:
    """Begin anew while the last epoch of a producer id has a transaction."""
    last = mine(actor)
    old = Actor(actor.wire, actor.name)
    old.producer_id, old.epoch, old.trace = actor.producer_id, actor.epoch, actor.trace
    actor.add(0)
    actor.send(0)
    actor.init()
    actor.state()
    old.send(0, 1)
    old.end(True)
    old.end(True, version=5)
    actor.init(**last)
    actor.init()


def ended(actor: Actor) -> None:
    """Commit the transaction of the last epoch of a producer id, and again."""
    last = mine(actor)
    actor.send(0, version=12)
    actor.end(True, version=5)
    actor.state()
    actor.end(True, version=5, **last)
    actor.end(False, version=5, **last)
    actor.init(**last)
    actor.init()
    actor.end(True, version=5, **last)


def timed_out(version: int, actor: Actor) -> None:
    """Let the transaction of the last epoch of a producer id time out."""
    last = mine(actor)
    if version < BUMPING:
        actor.add(0)
    actor.send(0, version=version)
    until(lambda: actor.described().transaction_state == "CompleteAbort")
    actor.state()
    described = actor.described()
    actor.step(described.producer_id != last["producer_id"], described.producer_epoch)
    actor.init(**last)
    actor.init()


SCENARIOS: Final[dict[str, Callable[[Actor], None]]] = {
    "rotated": rotated,
    "ended": ended,
    "timed out": partial(timed_out, BUMPING),
    **(
        {"aborted": aborted, "timed out before version 2": partial(timed_out, 9)}
        if SOAK > 1
        else {}
    ),
}


def mine(actor: Actor) -> dict[str, int]:
    """The fields that name the producer in InitProducerId."""
    return {"producer_id": actor.producer_id, "producer_epoch": actor.epoch}


def use_up(actors: Sequence[Actor]) -> None:
    """Bring producers, each with a connection of its own, to their last epoch."""
    frames = [
        encode_frame(
            InitProducerIdRequest(
                transactional_id=actor.name,
                transaction_timeout_ms=SHORT_MS if "timed out" in actor.name else TIMEOUT_MS,
            ),
            VERSION,
            0,
        )
        for actor in actors
    ]
    left = LAST_EPOCH + 1
    while left:
        count = min(PIPELINED, left)
        for actor, frame in zip(actors, frames, strict=True):
            actor.wire.socket.sendall(frame * count)
        for actor in actors:
            for _ in range(count):
                response = actor.wire.receive()
            body = decode_frame(response, response_to=(22, VERSION)).body
            assert isinstance(body, InitProducerIdResponse)
            actor.producer_id, actor.epoch = body.producer_id, body.producer_epoch
        left -= count
    assert [actor.epoch for actor in actors] == [LAST_EPOCH] * len(actors)


def seen(port: int) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the error of an epoch that is no longer the last, and the trace of each scenario."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(port)) for _ in SCENARIOS]
        actors = [
            Actor(wire, f"last epoch {name}") for wire, name in zip(wires, SCENARIOS, strict=True)
        ]
        for actor in actors:
            prepared(actor.wire, actor.name)
        use_up(actors)
        earlier = Actor(actors[0].wire, actors[0].name)
        earlier.init(producer_id=actors[0].producer_id, producer_epoch=LAST_EPOCH - 1)
        for actor, scenario in zip(actors, SCENARIOS.values(), strict=True):
            old = actor.producer_id
            scenario(actor)
            actor.step("other producer id", actor.producer_id != old)
        traces = {actor.name: actor.trace for actor in actors}
        return earlier.trace, traces


def test_a_node_responds_as_kafka_to_producers_whose_epochs_are_used_up(kafka: Broker) -> None:
    """Kafka also fails to fence a producer, with an error of its own."""
    with ClusterThread(ServerConfig()) as cluster:
        earlier, traces = seen(int(cluster.bootstrap.rpartition(":")[2]))
    kafkas, of_kafka = seen(kafka.port)
    assert traces == of_kafka
    assert earlier == [["InitProducerId", "PRODUCER_FENCED", -1]]
    assert kafkas == [["InitProducerId", "UNKNOWN_SERVER_ERROR", -1]]
