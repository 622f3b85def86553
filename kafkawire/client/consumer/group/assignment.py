"""What is ours of the group's partitions, and how that changes: step by step.

Law: partitions are given up only after what was read of them is committed and the listener has been
told; they are taken before it is told of them, and nothing of them is returned until it has heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from .. import events
from ..assignors import RebalanceProtocol, protocol_of
from ..components import Components
from ..failures import GroupFailed
from ..offsets.commits import Commits
from ..partitions import TopicPartition
from . import member_states, rebalancing
from .member_states import MemberState
from .rebalancing import Step, Steps
from .requests import NO_GENERATION, Offer

Effects: TypeAlias = list[object]


class Assignment:
    """The partitions that the group has given us.

    steps: what is under way. listens: whether there is a listener. close_by: when the consumer must
    be closed, if it is closing; ended: whether it is.
    """

    def __init__(self, parts: Components, commits: Commits) -> None:
        self._parts = parts
        self._commits = commits
        self._protocol = protocol_of(parts.config.assignors)
        self._owned: frozenset[TopicPartition] = frozenset()
        self._held: tuple[TopicPartition, ...] = ()
        self._held_generation = NO_GENERATION
        self._adopting: tuple[TopicPartition, ...] | None = None
        self.steps = Steps()
        self.listens = False
        self.close_by: float | None = None
        self.ended = False

    def leave(self, reason: str) -> None:
        """Give up what we have, and the group; what would lead into it is not done."""
        self.steps.cancel()
        if self._parts.membership.state is not MemberState.UNJOINED:
            self.steps.add(rebalancing.Leave(reason))
        else:
            self.let_go(list(self._parts.positions))

    def prepare(self) -> None:
        """Get ready to join."""
        self.steps.add(rebalancing.Prepare())

    def _offer(self) -> Offer:
        return Offer(
            tuple(sorted(self._parts.subscription.topics)),
            tuple(sorted(self._owned)),
            self._held,
            self._held_generation,
        )

    def adopt(self, event: member_states.PartitionsAssigned) -> None:
        """Make an assignment ours."""
        self._held, self._held_generation = event.partitions, event.generation_id
        self._adopting = event.partitions
        self.steps.add(rebalancing.Adopt(event.partitions))

    def lost(self, event: member_states.PartitionsLost) -> Effects:
        """Let go of everything at once."""
        lost = tuple(sorted(self._owned))
        self.let_go(lost)
        self._adopting = None
        if not lost:
            return []
        self.steps.add(rebalancing.Tell(events.Change.LOST, lost))
        return [events.Warn(GroupFailed(event.reason, partitions=lost)), events.Forget(lost)]

    def committed(self, serial: int, now: float) -> Effects:
        """Take in that what was read is committed, or cannot be."""
        return self.go_on(now) if self.steps.end(serial) else []

    def left(self, now: float) -> Effects:
        """Take in that we are out of the group."""
        leaving = isinstance(self.steps.current, rebalancing.LeaveGroup)
        return self.go_on(now) if leaving and self.steps.end(self.steps.serial) else []

    def go_on(self, now: float) -> Effects:
        """Take steps until one has to be waited for."""
        effects: Effects = []
        while (step := self.steps.begin()) is not None:
            waits, said = STEPS[type(step)](self, step, now)
            effects += said
            if waits:
                break
            self.steps.end(self.steps.serial)
        return effects

    def _unfold_prepare(self, _step: Step, _now: float) -> tuple[bool, Effects]:
        kept: frozenset[TopicPartition] = frozenset()
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            topics = self._parts.subscription.topics
            kept = frozenset(each for each in self._owned if each.topic in topics)
        self.steps.unfold(rebalancing.preparing(tuple(sorted(self._owned - kept))))
        return False, []

    def _unfold_adopt(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Adopt)
        if step.partitions is not self._adopting:  # lost, or assigned anew, meanwhile
            return False, []
        ours = frozenset(step.partitions)
        revoked, added = self._owned - ours, ours - self._owned
        self.steps.unfold(rebalancing.adopting(tuple(sorted(revoked)), tuple(sorted(added))))
        return False, []

    def _unfold_leave(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Leave)
        self.steps.unfold(rebalancing.leaving(tuple(sorted(self._owned)), step.reason))
        return False, []

    def _commit_read(self, _step: Step, now: float) -> tuple[bool, Effects]:
        return self._commits.for_step(self.steps.serial, self.close_by, now)

    def _tell(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Tell)
        told = step.partitions
        if step.change is not events.Change.LOST:
            told = tuple(each for each in told if each in self._owned)  # some may be lost since
        nothing = not told and step.change is not events.Change.ASSIGNED
        if nothing or not self.listens:
            return False, []
        return True, [events.CallListener(self.steps.serial, step.change, told)]

    def listener_done(self, event: events.ListenerDone, now: float) -> Effects:
        """Take in that the listener has returned."""
        return self.go_on(now) if self.steps.end(event.serial) else []

    def _release(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Release)
        self.let_go(step.partitions)
        return False, []

    def let_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget all about partitions."""
        gone = frozenset(partitions)
        self._owned -= gone
        self._parts.positions.drop(gone)
        self._parts.fetcher.fetch_buffer.drop(gone)
        self._commits.forget(gone)

    def _take(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Take)
        if self._adopting is None:  # lost meanwhile
            return False, []
        self._owned |= frozenset(step.partitions)
        self._parts.positions.take(step.partitions)
        return False, []

    def _ready(self, _step: Step, now: float) -> tuple[bool, Effects]:
        return False, self._parts.membership.handle(member_states.Prepared(self._offer()), now)

    def _join_again(self, _step: Step, now: float) -> tuple[bool, Effects]:
        reason = "released what others wait for"
        return False, self._parts.membership.handle(member_states.JoinWanted(reason), now)

    def _leave_group(self, step: Step, now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.LeaveGroup)
        self._held, self._held_generation = (), NO_GENERATION
        self._adopting = None
        return True, self._parts.membership.handle(member_states.LeaveWanted(step.reason), now)

    def _answer(self, step: Step, _now: float) -> tuple[bool, Effects]:
        assert isinstance(step, rebalancing.Answer)
        return False, [events.Done(step.key)]

    def _end(self, _step: Step, _now: float) -> tuple[bool, Effects]:
        self.ended = True
        return True, []


STEPS: Final[Mapping[type, Callable[[Assignment, Step, float], tuple[bool, Effects]]]] = {
    rebalancing.Prepare: Assignment._unfold_prepare,
    rebalancing.Adopt: Assignment._unfold_adopt,
    rebalancing.Leave: Assignment._unfold_leave,
    rebalancing.CommitRead: Assignment._commit_read,
    rebalancing.Tell: Assignment._tell,
    rebalancing.Release: Assignment._release,
    rebalancing.Take: Assignment._take,
    rebalancing.Ready: Assignment._ready,
    rebalancing.JoinAgain: Assignment._join_again,
    rebalancing.LeaveGroup: Assignment._leave_group,
    rebalancing.Answer: Assignment._answer,
    rebalancing.End: Assignment._end,
}
"""Step -> how it is done; each says whether it must be waited for."""
