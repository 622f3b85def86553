"""The steps of a rebalance, a leave or a close, one after the other.

Law: a step begins when the one before it has ended; while there is one, no records are delivered.

                 prepare                         assigned                          leave
    EAGER        commit, tell revoked (all),     take, tell assigned               commit, tell
                 release, ready                                                    revoked, release,
    COOPERATIVE  the same, for what is no        commit, tell revoked, release     leave, [end]
                 longer subscribed               (what is not ours any more);
                                                 take, tell assigned; join again
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..events import Change
from ..partitions import TopicPartition

Partitions: TypeAlias = tuple[TopicPartition, ...]


# Steps that unfold into others when their turn comes, as what is ours may change until then.


@dataclass(frozen=True, slots=True)
class Prepare:
    """Get ready to join."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Make of an assignment what is ours."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Leave:
    """Give up everything, and the group."""

    reason: str


# Steps that do something.


@dataclass(frozen=True, slots=True)
class CommitRead:
    """Commit what was read, if that is done automatically."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Have the listener told, if there is one."""

    change: Change
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Release:
    """Let partitions go."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Take:
    """Begin with partitions."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Ready:
    """Say that we are prepared to join."""


@dataclass(frozen=True, slots=True)
class JoinAgain:
    """Join once more: others wait for what we released (KIP-429)."""


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Tell whoever asked for it that it is done."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class End:
    """The consumer is closed."""


Step: TypeAlias = (
    Prepare
    | Adopt
    | Leave
    | CommitRead
    | Tell
    | Release
    | Take
    | Ready
    | JoinAgain
    | LeaveGroup
    | Answer
    | End
)


class Steps:
    """What is still to be done; serial: of the step that is under way."""

    def __init__(self) -> None:
        self._left: deque[Step] = deque()
        self.current: Step | None = None
        self.serial = 0

    def __bool__(self) -> bool:
        return self.current is not None or bool(self._left)

    @property
    def pending(self) -> bool:
        """Whether a step could begin."""
        return self.current is None and bool(self._left)

    def add(self, *steps: Step) -> None:
        """Do these behind what is to be done already."""
        self._left.extend(steps)

    def unfold(self, steps: Iterable[Step]) -> None:
        """Do these before everything else."""
        self._left.extendleft(reversed(list(steps)))

    def cancel(self) -> None:
        """Drop what has not begun, but for what somebody must be told."""
        self._left = deque(each for each in self._left if _owed(each))

    def begin(self) -> Step | None:
        """Begin the next step; None if one is under way or none is left."""
        if self.current is not None or not self._left:
            return None
        self.serial += 1
        self.current = self._left.popleft()
        return self.current

    def end(self, serial: int) -> bool:
        """End the step of that serial; False if it is not the one under way."""
        if self.current is None or serial != self.serial:
            return False
        self.current = None
        return True


def preparing(revoked: Partitions) -> list[Step]:
    """What comes before a join."""
    return [CommitRead(), *_releasing(revoked), Ready()]


def adopting(revoked: Partitions, added: Partitions) -> list[Step]:
    """What comes with an assignment."""
    letting_go = [CommitRead(), *_releasing(revoked)] if revoked else []
    again = [JoinAgain()] if revoked else []
    return [*letting_go, Take(added), Tell(Change.ASSIGNED, added), *again]


def leaving(owned: Partitions, reason: str) -> list[Step]:
    """What comes with leaving the group."""
    return [CommitRead(), *_releasing(owned), LeaveGroup(reason)]


def _releasing(partitions: Partitions) -> list[Step]:
    return [Tell(Change.REVOKED, partitions), Release(partitions)] if partitions else []


def _owed(step: Step) -> bool:
    return isinstance(step, Answer) or (isinstance(step, Tell) and step.change is Change.LOST)
