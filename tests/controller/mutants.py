"""Rules taken out of the controller, one at a time: some seed has to find each.

A mutant patches what the machine runs on; the simulation's own checks stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final
from unittest.mock import patch

from kafkawire.controller import (
    BecameLeader,
    RequestReceived,
    Respond,
    broker_states,
    partition_change,
    quorum_controller,
)
from kafkawire.controller.broker_states import BrokerState, Trigger
from kafkawire.controller.operations import alter_partition, broker_heartbeat, broker_registration
from kafkawire.controller.operations import producer_ids as ids
from kafkawire.controller.partition_change import PartitionChange
from kafkawire.controller.quorum_controller import QuorumController
from kafkawire.controller.sessions import Sessions
from kafkawire.controller.state import ControllerState
from kafkawire.messages.producer_ids_record import ProducerIdsRecord
from kafkawire.metadata import MetadataLoader, indexes, registrations, topic_records
from kafkawire.metadata import image as images

S, T = BrokerState, Trigger
Patch = Any


def _checks(*kept: bool) -> Patch:
    checks = alter_partition.CHECKS
    assert len(kept) == len(checks)
    left = tuple(each for each, keep in zip(checks, kept, strict=True) if keep)
    return patch.object(alter_partition, "CHECKS", left)


def _without(*numbers: int) -> Patch:
    return _checks(*(n not in numbers for n in range(len(alter_partition.CHECKS))))


def _nothing(*_args: Any, **_keywords: Any) -> None:
    return None


def _yes(*_args: Any) -> bool:
    return True


def _next(state: BrokerState, trigger: Trigger, after: BrokerState) -> Patch:
    table = {**broker_states.NEXT, state: {**broker_states.NEXT[state], trigger: after}}
    return patch.object(broker_states, "NEXT", table)


def _merge(**kept: str) -> Patch:
    """Leave a field as it was when a change is merged."""
    merge = registrations.PartitionRegistration.merge

    def merged(self: Any, change: Any) -> Any:
        return merge(self, change)._replace(**{name: getattr(self, name) for name in kept})

    return patch.object(registrations.PartitionRegistration, "merge", merged)


def _trigger_without_reading() -> Patch:
    trigger = broker_heartbeat._trigger

    def made(state: Any, body: Any, before: Any) -> Any:
        found = trigger(state, body, before)
        eager = before is S.FENCED and not body.want_shut_down and not body.want_fence
        return T.CAUGHT_UP if eager else found

    return patch.object(broker_heartbeat, "_trigger", made)


def _acknowledge_at_once() -> Patch:
    received = QuorumController._received

    def early(self: QuorumController, event: Any, now: float) -> Any:
        effects = received(self, event, now)
        done, self._waiting = list(self._waiting), type(self._waiting)()
        return effects + [Respond(each.request.request_id, each.response) for each in done]

    table = {**quorum_controller.HANDLERS, RequestReceived: early}
    return patch.object(quorum_controller, "HANDLERS", table)


def _keep_uncommitted() -> Patch:
    """Go on with the uncommitted metadata of the last time that this controller led."""
    became = QuorumController._became_leader

    def kept(self: QuorumController, event: Any, now: float) -> Any:
        before = getattr(self, "mutant_last", None)
        effects = became(self, event, now)
        if before is not None and self._state is not None:
            self._state.image = before
        if self._state is not None:
            self.mutant_last = self._state.image  # type: ignore[attr-defined]
        return effects

    table = {**quorum_controller.HANDLERS, BecameLeader: kept}
    return patch.object(quorum_controller, "HANDLERS", table)


def _snapshot_without(name: str) -> Patch:
    record = registrations.PartitionRegistration.record

    def made(self: Any, topic_id: bytes, index: int) -> Any:
        return record(self._replace(**{name: ()}), topic_id, index)

    return patch.object(registrations.PartitionRegistration, "record", made)


def _any_broker(self: ControllerState, broker_id: int, _epoch: int) -> Any:
    return self.image.brokers.get(broker_id)


def _fence_only(state: Any, broker_id: int) -> None:
    with patch.object(broker_heartbeat, "leave_isr", _nothing):
        FENCE(state, broker_id)


FENCE: Final = broker_heartbeat.fence


def _eligible_if_unclean(self: PartitionChange, broker_id: int) -> bool:
    return self.is_online(broker_id)


def _delete_without_configs() -> Patch:
    remove = topic_records.topic_removed

    def made(image: Any, record: Any, delta: Any) -> None:
        configs = dict(image.configs)
        remove(image, record, delta)
        image.configs.update(configs)

    replay = import_module("kafkawire.metadata.replay")
    table = {**replay.REPLAY}
    table[next(key for key, value in table.items() if value is remove)] = made
    return patch.object(replay, "REPLAY", table)


def _one_less(**fields: Any) -> ProducerIdsRecord:
    return ProducerIdsRecord(**{**fields, "next_producer_id": fields["next_producer_id"] - 1})


def _decided_at_once() -> Patch:
    """Decide on a request while a larger one is not finished."""
    received = QuorumController._received

    def early(self: QuorumController, event: Any, now: float) -> Any:
        undecided, self._undecided = self._undecided, type(self._undecided)()
        work, self._work = self._work, None
        go_on_at = self._go_on_at
        effects = received(self, event, now)
        if undecided and self._state is not None:
            self._undecided.extendleft(reversed(undecided))
            self._work, self._go_on_at = work, go_on_at
        return effects

    table = {**quorum_controller.HANDLERS, RequestReceived: early}
    return patch.object(quorum_controller, "HANDLERS", table)


def _no_transaction(self: ControllerState, _name: str = "") -> None:
    self.in_transaction = not self.in_transaction


@contextmanager
def _without_transactions() -> Iterator[None]:
    with (
        patch.object(ControllerState, "begin_transaction", _no_transaction),
        patch.object(ControllerState, "end_transaction", _no_transaction),
    ):
        yield


def _left_in_transaction() -> Patch:
    """Do not see that the one before left a transaction open."""
    became = QuorumController._became_leader

    def blind(self: QuorumController, event: Any, now: float) -> Any:
        with patch.object(MetadataLoader, "in_transaction", False):
            return became(self, event, now)

    table = {**quorum_controller.HANDLERS, BecameLeader: blind}
    return patch.object(quorum_controller, "HANDLERS", table)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "leader epoch not compared": lambda: _without(0, 2),
    "partition epoch not compared": lambda: _without(1, 4),
    "anybody alters a partition": lambda: _without(3, 6),
    "ineligible replicas enter the ISR": lambda: _without(10),
    "a second incarnation during a session": lambda: patch.object(
        broker_registration, "_is_taken", lambda *_: False
    ),
    "fenced without leaving ISRs": lambda: patch.object(quorum_controller, "fence", _fence_only),
    "unfenced without having read": _trigger_without_reading,
    "unfenced while shutting down": lambda: _next(S.FENCED, T.WANTS_SHUTDOWN, S.UNFENCED),
    "stops before others know": lambda: patch.object(Sessions, "may_stop", _yes),
    "broker epochs not compared": lambda: patch.object(ControllerState, "broker", _any_broker),
    "acknowledged before it is committed": _acknowledge_at_once,
    "uncommitted metadata kept": _keep_uncommitted,
    "leader epoch not bumped": lambda: _merge(leader_epoch=""),
    "partition epoch not bumped": lambda: _merge(partition_epoch=""),
    "nobody enters or leaves the ELR": lambda: _merge(elr=""),
    "producer id blocks overlap": lambda: patch.object(ids, "ProducerIdsRecord", _one_less),
    "reassignments never complete": lambda: patch.object(
        PartitionChange, "_complete_reassignment", _nothing
    ),
    "no epoch for a removal": lambda: patch.object(
        PartitionChange, "_bump_for_reassignment", _nothing
    ),
    "no epoch for a smaller ISR": lambda: patch.object(partition_change, "EPOCH_BUMP_UNTIL", 0),
    "any replica is elected": lambda: patch.object(
        PartitionChange, "_is_eligible", _eligible_if_unclean
    ),
    "nobody is elected when a broker returns": lambda: patch.object(
        broker_heartbeat, "change_partition", _nothing
    ),
    "ELR keeps who lost records": lambda: patch.object(
        broker_registration, "lose_records", partition_change.leave_isr
    ),
    "a new incarnation stays in ISRs": lambda: patch.object(
        broker_registration, "_shut_down", _nothing
    ),
    "snapshots without reassignments": lambda: _snapshot_without("removing"),
    "snapshots without ELR": lambda: _snapshot_without("elr"),
    "a deleted topic keeps its configs": _delete_without_configs,
    "the index of ISRs is not kept": lambda: patch.object(
        indexes.PartitionIndexes, "update", _update_without_isr
    ),
    "slices are not a transaction": _without_transactions,
    "an open transaction is not aborted": _left_in_transaction,
    "others are decided on between slices": _decided_at_once,
    "images share partitions": lambda: patch.object(images.TopicImage, "copy", lambda self: self),
}
"""What is wrong -> the patch."""

UPDATE: Final = indexes.PartitionIndexes.update


def _update_without_isr(self: Any, at: Any, old: Any, new: Any) -> None:
    with patch.object(self.isr, "update", _nothing):
        UPDATE(self, at, old, new)


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with MUTANTS[name]():
        yield
