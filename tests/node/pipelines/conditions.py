"""Conditions under which a run of pipelines meets rules that others seldom meet.

Each is a patch of what clients, brokers' settings or faults are in a run; rules stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafkawire.metadata import TopicIdPartition
from kafkawire.primitives import Message
from kafkawire.transactions import NONE, Transaction, coordinator, verdicts
from kafkawire.transactions.markers import LeaderOf, MarkerRequest, TransactionMarkers
from kafkawire.transactions.transaction import LAST_EPOCH

from .. import scenario, simulation
from ..scenario import Composition, Fault, Scenario
from . import workers
from .producers import TIMEOUT_MS, Producer, Succeeded
from .simulation import with_pipeline
from .steps import Call, Pause, Steps, leader, play
from .workers import Worker

Patch = Any
ENDS_SOON: Final = "ends soon"
"""The condition of all brief runs."""
FAULTY_UNTIL: Final = 5.0
KILLED_FOR: Final = 0.5
ENDS_LATE: Final = 5
"""The version of EndTxn from which one that arrives late ends nothing."""
LATE: Final = (0.01, 0.3)
ZOMBIES_RETURN: Final = 1.0
HURRYING: Final = (0.01, 0.05)
"""The pauses of workers, in seconds."""
EXPIRING: Final = {
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}


def brief(seed: int, composition: Composition = Composition.IN_MEMORY) -> Scenario:
    """Draw a scenario of a few seconds without faults of its own."""
    return with_pipeline(seed, composition)._replace(
        brokers=3, duplicates=0.0, snapshots=False, two=False, faulty_until=FAULTY_UNTIL, faults=()
    )


def _ends_soon() -> ExitStack:
    """Let workers hurry, and a run end when it should have: after transactions time out."""
    stack = ExitStack()
    stack.enter_context(
        patch.multiple(
            simulation, HEALED_AFTER=0.5, QUIET_AFTER=0.5, CATCH_UP=TIMEOUT_MS / 1000 + 2.0
        )
    )
    stack.enter_context(patch.object(workers, "PAUSE", HURRYING))
    return stack


def _when_succeeded(
    kind: type[Message], every: int, then: Callable[[Producer, Any], None]
) -> Patch:
    """Do something when a broker responds to one of so many requests of a kind."""
    original, numbers = Producer.call, count(1)

    def call(
        self: Producer, find: Any, version: int, body: Any, on_success: Any = lambda _: None
    ) -> Succeeded:
        def succeeded(response: Any) -> None:
            on_success(response)
            if isinstance(body, kind) and next(numbers) % every == 0:
                then(self, body)

        return original(self, find, version, body, succeeded)

    return patch.object(Producer, "call", call)


def _kill(cluster: Any, node: int | None) -> None:
    fault = Fault(cluster.now, "kill", node or 0, 0, KILLED_FOR)
    cluster.at(cluster.now, lambda: cluster.happen(fault))


def _kill_coordinator(producer: Producer, _ended: EndTxnRequest) -> None:
    _kill(producer.cluster, producer.coordinator.node)


def _kill_group_coordinator(producer: Producer, _committed: TxnOffsetCommitRequest) -> None:
    """Kill it within a transaction, as long as there are faults: replicas are to catch up."""
    image = producer.cluster.image()
    topic = None if image is None else image.topic(OFFSETS_TOPIC)
    assert topic is not None
    if producer.cluster.now < FAULTY_UNTIL:
        _kill(producer.cluster, leader(producer.cluster, TopicIdPartition(topic.topic_id, 0)))


def _end_again(producer: Producer, ended: EndTxnRequest) -> None:
    """Let the network deliver EndTxn once more. In version 1 it ends the next transaction."""

    def steps() -> Steps:
        yield Pause(producer.cluster.rng.uniform(*LATE))
        yield Call(producer.coordinator.node, ENDS_LATE, ended)

    if producer.protocol.value["end"] == ENDS_LATE:
        play(producer.cluster, steps())


def _markers_are_lost() -> Patch:
    """Lose one of three requests that write markers."""
    original, numbers = TransactionMarkers.requests, count(1)

    def requests(self: TransactionMarkers, leader_of: LeaderOf, now: float) -> list[MarkerRequest]:
        sent = []
        for request in original(self, leader_of, now):
            if next(numbers) % 3 == 0:
                self.response(request.broker_id, None, now)
            else:
                sent.append(request)
        return sent

    return patch.object(TransactionMarkers, "requests", requests)


def _last_epochs_come_soon() -> Patch:
    """Let the first epoch of a transactional id be one of the last."""
    original = verdicts.next_epochs

    def next_epochs(current: Transaction, expected: int) -> Any:
        is_first = current.producer_epoch == NONE and current.previous_producer_id == NONE
        return (LAST_EPOCH - 2, NONE) if is_first else original(current, expected)

    return patch.object(coordinator, "next_epochs", next_epochs)


def _producers_name_their_epochs() -> ExitStack:
    """Let producers begin anew with the epoch that they have (KIP-360), zombies, too."""
    original, leave = Producer.initialise, Worker.leave

    def initialise(self: Producer) -> Succeeded:
        if self.epoch == NONE:
            return (yield from original(self))
        body = InitProducerIdRequest(transaction_timeout_ms=TIMEOUT_MS, **self.fields())
        return (yield from self.call(self.coordinator.find, 5, body))

    def leave_and_return(self: Worker, *, orderly: bool) -> None:
        leave(self, orderly=orderly)
        if not orderly:
            after = self.cluster.now + ZOMBIES_RETURN
            self.cluster.at(after, lambda: play(self.cluster, self.producer.initialise()))

    stack = ExitStack()
    stack.enter_context(patch.object(Producer, "initialise", initialise))
    stack.enter_context(patch.object(Worker, "leave", leave_and_return))
    return stack


CONDITIONS: Final[Mapping[str, Callable[[], Patch]]] = {
    ENDS_SOON: _ends_soon,
    "coordinators are killed": lambda: _when_succeeded(EndTxnRequest, 3, _kill_coordinator),
    "group coordinators are killed": lambda: _when_succeeded(
        TxnOffsetCommitRequest, 2, _kill_group_coordinator
    ),
    "markers are lost": _markers_are_lost,
    "ends arrive again": lambda: _when_succeeded(EndTxnRequest, 1, _end_again),
    "last epochs come soon": _last_epochs_come_soon,
    "producers name their epochs": _producers_name_their_epochs,
    "transactional ids expire": lambda: patch.dict(scenario.OF_GROUPS, EXPIRING),
    "workers stand still before TxnOffsetCommit": lambda: patch.object(
        workers, "STALLS", {TxnOffsetCommitRequest: 1}
    ),
}


def under(*names: str) -> ExitStack:
    """Enter the conditions; they end with the stack."""
    stack = ExitStack()
    for name in names:
        stack.enter_context(CONDITIONS[name]())
    return stack
