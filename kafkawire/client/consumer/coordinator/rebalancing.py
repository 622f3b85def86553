"""The steps of a rebalance, a leave or a close, one after the other.

A step begins when the one before it has ended; while a step is pending, no records are
delivered.

                 prepare                        assigned                       leave
    EAGER        commit, on revoked (all),      add, on assigned               commit, on revoked,
                 remove, join                                                  remove, leave,
    COOPERATIVE  the same, for topics that are  commit, on revoked, remove     [close]
                 no longer subscribed           (what is no longer assigned);
                                                add, on assigned; rejoin
    CONSUMER     join                           the same, but acknowledge      the same
                                                after remove and at the end
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..events import Change
from ..partitions import TopicPartition

Partitions: TypeAlias = tuple[TopicPartition, ...]


# Steps that expand into others when they begin, as the assignment may change until then.


@dataclass(frozen=True, slots=True)
class Prepare:
    """Prepare to join."""


@dataclass(frozen=True, slots=True)
class ApplyAssignment:
    """Apply an assignment of the group."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class ReconcileAssignment:
    """Apply an assignment of the coordinator (KIP-848)."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the group."""

    reason: str


# Steps that take effect.


@dataclass(frozen=True, slots=True)
class CommitConsumed:
    """Commit the consumed offsets, if enable.auto.commit is set."""


@dataclass(frozen=True, slots=True)
class NotifyListener:
    """Call the rebalance listener, if the user has one."""

    change: Change
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class RemovePartitions:
    """Remove partitions from the assignment."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions to the assignment."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class ReadyToJoin:
    """Report to the membership that it can join."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Join again: other members wait for the revoked partitions (KIP-429)."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Report the owned partitions to the membership. complete: the assignment is applied."""

    complete: bool


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Send LeaveGroup, and wait until the member has left."""

    reason: str


@dataclass(frozen=True, slots=True)
class CompleteCall:
    """Complete a call of the user."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class FinishClose:
    """Close the consumer."""


Step: TypeAlias = (
    Prepare
    | ApplyAssignment
    | ReconcileAssignment
    | Leave
    | CommitConsumed
    | NotifyListener
    | RemovePartitions
    | AddPartitions
    | ReadyToJoin
    | Rejoin
    | Acknowledge
    | LeaveGroup
    | CompleteCall
    | FinishClose
)


class Steps:
    """A queue of steps. serial: the number of the current step."""

    def __init__(self) -> None:
        self._queue: deque[Step] = deque()
        self.current: Step | None = None
        self.serial = 0

    def __bool__(self) -> bool:
        return self.current is not None or bool(self._queue)

    @property
    def pending(self) -> bool:
        """Whether the next step can begin."""
        return self.current is None and bool(self._queue)

    def add(self, *steps: Step) -> None:
        """Append steps to the queue."""
        self._queue.extend(steps)

    def expand(self, steps: Iterable[Step]) -> None:
        """Put steps at the front of the queue."""
        self._queue.extendleft(reversed(list(steps)))

    def cancel(self) -> None:
        """Remove steps that have not begun, except those that the user must see."""
        self._queue = deque(each for each in self._queue if _must_run(each))

    def begin(self) -> Step | None:
        """Begin the next step; None if a step is current or the queue is empty."""
        if self.current is not None or not self._queue:
            return None
        self.serial += 1
        self.current = self._queue.popleft()
        return self.current

    def end(self, serial: int) -> bool:
        """End the current step; False if the serial is that of another step."""
        if self.current is None or serial != self.serial:
            return False
        self.current = None
        return True


def preparing(revoked: Partitions) -> list[Step]:
    """Return the steps before a join."""
    return [CommitConsumed(), *_revoking(revoked), ReadyToJoin()]


def applying(revoked: Partitions, added: Partitions) -> list[Step]:
    """Return the steps that apply an assignment."""
    revoking = [CommitConsumed(), *_revoking(revoked)] if revoked else []
    rejoining = [Rejoin()] if revoked else []
    return [*revoking, *_adding(added), *rejoining]


def reconciling(revoked: Partitions, added: Partitions) -> list[Step]:
    """Return the steps that apply an assignment of the coordinator.

    Other members get what is revoked while the listener handles what is added.
    """
    revoking = [CommitConsumed(), *_revoking(revoked), Acknowledge(False)] if revoked else []
    return [*revoking, *_adding(added), Acknowledge(True)]


def leaving(owned: Partitions, reason: str) -> list[Step]:
    """Return the steps that leave the group."""
    return [CommitConsumed(), *_revoking(owned), LeaveGroup(reason)]


def _revoking(partitions: Partitions) -> list[Step]:
    return (
        [NotifyListener(Change.REVOKED, partitions), RemovePartitions(partitions)]
        if partitions
        else []
    )


def _adding(partitions: Partitions) -> list[Step]:
    return [AddPartitions(partitions), NotifyListener(Change.ASSIGNED, partitions)]


def _must_run(step: Step) -> bool:
    return isinstance(step, CompleteCall) or (
        isinstance(step, NotifyListener) and step.change is Change.LOST
    )
