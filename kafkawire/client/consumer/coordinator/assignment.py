"""Applies the group's assignments to the consumer, step by step.

Partitions are removed only after their offsets are committed and the listener has returned.
They are added before the listener is called; their records are returned after it has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .. import events
from ..assignors import RebalanceProtocol, protocol_of
from ..components import Components, Effect, Effects
from ..consumer_group import member_states as consumer_group
from ..failures import GroupFailed
from ..group import member_states
from ..group.requests import NO_GENERATION, JoinMetadata
from ..partitions import TopicPartition
from . import rebalancing
from .commits import Commits
from .rebalancing import Partitions, Step, Steps


class Assignment:
    """The partitions that the group has assigned to this consumer.

    steps: the steps to take. has_listener: whether the user has a rebalance listener.
    close_deadline: when the consumer must be closed, if it is closing. ended: whether it is closed.
    """

    def __init__(self, components: Components, commits: Commits) -> None:
        self._components = components
        self._commits = commits
        self._protocol = protocol_of(components.config.assignors)
        self._owned: frozenset[TopicPartition] = frozenset()
        self._last_assigned: tuple[TopicPartition, ...] = ()
        self._last_generation = NO_GENERATION
        self._applying: tuple[TopicPartition, ...] | None = None
        self.steps = Steps()
        self.has_listener = False
        self.close_deadline: float | None = None
        self.ended = False

    def leave(self, reason: str) -> None:
        """Leave the group and drop all partitions; steps that have not begun are cancelled."""
        self.steps.cancel()
        if not self._components.membership.unjoined:
            self.steps.add(rebalancing.Leave(reason))
        else:
            self.drop_partitions(list(self._components.positions))

    def prepare(self) -> None:
        """Prepare to join: commit and revoke."""
        self.steps.add(rebalancing.Prepare())

    def _join_metadata(self) -> JoinMetadata:
        return JoinMetadata(
            tuple(sorted(self._components.subscription.topics)),
            tuple(sorted(self._owned)),
            self._last_assigned,
            self._last_generation,
        )

    def on_assigned(self, event: member_states.PartitionsAssigned) -> None:
        """Apply an assignment of the group."""
        self._last_assigned, self._last_generation = event.partitions, event.generation_id
        self._applying = event.partitions
        self.steps.add(rebalancing.ApplyAssignment(event.partitions))

    def on_reconcile(self, event: consumer_group.Reconcile) -> None:
        """Apply an assignment of the coordinator."""
        self._applying = event.partitions
        self.steps.add(rebalancing.ReconcileAssignment(event.partitions))

    def on_lost(self, event: member_states.PartitionsLost) -> Effects:
        """Drop all partitions at once: they are lost."""
        lost = tuple(sorted(self._owned))
        self.drop_partitions(lost)
        self._applying = None
        if not lost:
            return []
        self.steps.add(rebalancing.NotifyListener(events.Change.LOST, lost))
        return [
            events.Warn(GroupFailed(event.reason, partitions=lost)),
            events.DiscardRecords(lost),
        ]

    def on_committed(self, serial: int, now: float) -> Effects:
        """Continue after a step's commit, whether it succeeded or failed."""
        return self.run(now) if self.steps.end(serial) else []

    def on_left(self, now: float) -> Effects:
        """Continue after the member has left the group."""
        leaving = isinstance(self.steps.current, rebalancing.LeaveGroup)
        return self.run(now) if leaving and self.steps.end(self.steps.serial) else []

    def run(self, now: float) -> Effects:
        """Run steps until one must be waited for."""
        effects: list[Effect] = []
        while (step := self.steps.begin()) is not None:
            waits, step_effects = STEPS[type(step)](self, step, now)
            effects += step_effects
            if waits:
                break
            self.steps.end(self.steps.serial)
        return effects

    def _expand_prepare(self, _step: Step, _now: float) -> tuple[bool, Effects]:
        retained: frozenset[TopicPartition] = frozenset()
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            topics = self._components.subscription.topics
            retained = frozenset(each for each in self._owned if each.topic in topics)
        self.steps.expand(rebalancing.preparing(tuple(sorted(self._owned - retained))))
        return False, []

    def _expand_apply_assignment(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.ApplyAssignment | rebalancing.ReconcileAssignment)
        if step.partitions is not self._applying:  # lost or replaced meanwhile
            return False, []
        assigned = frozenset(step.partitions)
        revoked, added = self._owned - assigned, assigned - self._owned
        steps = APPLYING[type(step)]
        self.steps.expand(steps(tuple(sorted(revoked)), tuple(sorted(added))))
        return False, []

    def _expand_leave(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Leave)
        self.steps.expand(rebalancing.leaving(tuple(sorted(self._owned)), step.reason))
        return False, []

    def _commit_consumed(self, _step: Step, now: float) -> tuple[bool, Effects]:
        return self._commits.commit_sync(self.steps.serial, self.close_deadline, now)

    def _notify_listener(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.NotifyListener)
        partitions = step.partitions
        if step.change is not events.Change.LOST:
            partitions = tuple(each for each in partitions if each in self._owned)
        empty = not partitions and step.change is not events.Change.ASSIGNED
        if empty or not self.has_listener:
            return False, []
        return True, [events.CallListener(self.steps.serial, step.change, partitions)]

    def on_listener_done(self, event: events.ListenerDone, now: float) -> Effects:
        """Continue after the listener has returned."""
        return self.run(now) if self.steps.end(event.serial) else []

    def _remove_partitions(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.RemovePartitions)
        self.drop_partitions(step.partitions)
        return False, []

    def drop_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions with their positions and buffered records."""
        dropped = frozenset(partitions)
        self._owned -= dropped
        self._components.positions.drop(dropped)
        self._components.fetcher.fetch_buffer.drop(dropped)
        self._commits.forget(dropped)

    def _add_partitions(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.AddPartitions)
        if self._applying is None:  # lost meanwhile
            return False, []
        self._owned |= frozenset(step.partitions)
        self._components.positions.add(step.partitions)
        return False, []

    def _ready_to_join(self, _step: Step, now: float) -> tuple[bool, Effects]:
        return False, self._components.membership.handle(
            member_states.Prepared(self._join_metadata()), now
        )

    def _rejoin(self, _step: Step, now: float) -> tuple[bool, Effects]:
        reason = "revoked partitions that other members need"
        return False, self._components.membership.handle(member_states.JoinWanted(reason), now)

    def _acknowledge(self, step: Step, now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Acknowledge)
        reconciled = consumer_group.Reconciled(self._owned, step.complete)
        return False, self._components.membership.handle(reconciled, now)

    def _leave_group(self, step: Step, now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.LeaveGroup)
        self._last_assigned, self._last_generation = (), NO_GENERATION
        self._applying = None
        return True, self._components.membership.handle(member_states.LeaveWanted(step.reason), now)

    def _complete_call(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.CompleteCall)
        return False, [events.Done(step.key)]

    def _finish_close(self, _step: Step, _now: float) -> tuple[bool, Effects]:
        self.ended = True
        return True, []


APPLYING: Final[Mapping[type, Callable[[Partitions, Partitions], list[Step]]]] = {
    rebalancing.ApplyAssignment: rebalancing.applying,
    rebalancing.ReconcileAssignment: rebalancing.reconciling,
}
"""Step -> the steps that revoke some partitions and add others."""

STEPS: Final[Mapping[type, Callable[[Assignment, Step, float], tuple[bool, Effects]]]] = {
    rebalancing.Prepare: Assignment._expand_prepare,
    rebalancing.ApplyAssignment: Assignment._expand_apply_assignment,
    rebalancing.ReconcileAssignment: Assignment._expand_apply_assignment,
    rebalancing.Leave: Assignment._expand_leave,
    rebalancing.CommitConsumed: Assignment._commit_consumed,
    rebalancing.NotifyListener: Assignment._notify_listener,
    rebalancing.RemovePartitions: Assignment._remove_partitions,
    rebalancing.AddPartitions: Assignment._add_partitions,
    rebalancing.ReadyToJoin: Assignment._ready_to_join,
    rebalancing.Rejoin: Assignment._rejoin,
    rebalancing.Acknowledge: Assignment._acknowledge,
    rebalancing.LeaveGroup: Assignment._leave_group,
    rebalancing.CompleteCall: Assignment._complete_call,
    rebalancing.FinishClose: Assignment._finish_close,
}
"""Step -> method; returns whether the step must be waited for, and its effects."""
