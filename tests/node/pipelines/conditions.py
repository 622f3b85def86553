"""Conditions under which a run of pipelines meets rules that others seldom meet.

Each is a patch of what clients, brokers' settings or faults are in a run; rules stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Any, Final
from unittest.mock import patch

from kafkawire.messages.end_txn_request import EndTxnRequest
from kafkawire.messages.init_producer_id_request import InitProducerIdRequest
from kafkawire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafkawire.transactions import NONE

from .. import scenario, simulation
from ..scenario import Composition, Fault, Scenario
from . import workers
from .producers import TIMEOUT_MS, Producer, Succeeded
from .simulation import with_pipeline
from .steps import play
from .workers import Worker

Patch = Any
ENDS_SOON: Final = "ends soon"
"""The condition of all brief runs."""
KILLED_EVERY: Final = 3
"""Of so many EndTxn, the coordinator of one is killed."""
KILLED_FOR: Final = 0.5
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
        brokers=3, duplicates=0.0, snapshots=False, two=False, faulty_until=5.0, faults=()
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


def _coordinators_are_killed() -> Patch:
    """Kill coordinators of transactions when they respond to EndTxn."""
    original, numbers = Producer.call, count(1)

    def call(
        self: Producer, find: Any, version: int, body: Any, on_success: Any = lambda _: None
    ) -> Succeeded:
        def ended(response: Any) -> None:
            on_success(response)
            if isinstance(body, EndTxnRequest) and next(numbers) % KILLED_EVERY == 0:
                _kill(self.cluster, self.coordinator.node)

        return original(self, find, version, body, ended)

    return patch.object(Producer, "call", call)


def _kill(cluster: Any, node: int | None) -> None:
    fault = Fault(cluster.now, "kill", node or 0, 0, KILLED_FOR)
    cluster.at(cluster.now, lambda: cluster.happen(fault))


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
    "coordinators are killed": _coordinators_are_killed,
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
