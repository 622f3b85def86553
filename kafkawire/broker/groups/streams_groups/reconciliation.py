"""Moves a member towards its target assignment, as Kafka's CurrentAssignmentBuilder for Streams.

Invariant: an active task has one member; a process has no two members with the same task. A member
gets the epoch of the target when it has revoked all that it must.

    STABLE ─▶ UNREVOKED ─▶ UNRELEASED ─▶ STABLE
              (revokes)    (waits for others)
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..consumer_groups.members import MemberState
from .members import Current
from .tasks import Task, Tasks, TaskSet

S = MemberState


class Holders(Protocol):
    """Which processes have a task now."""

    def active_process(self, task: Task, /) -> str | None:
        """Return the process that runs a task."""

    def has_standby(self, task: Task, process_id: str, /) -> bool:
        """Whether a process has a standby task."""

    def has_warmup(self, task: Task, process_id: str, /) -> bool:
        """Whether a process has a warm-up task."""


class Target(NamedTuple):
    """The target assignment of a member, and the epoch of that of its group."""

    epoch: int
    tasks: Tasks


class Reconciliation(NamedTuple):
    """A member that is moved to its target. owned: what it says that it has, None if unchanged."""

    current: Current
    target: Target
    owned: Tasks | None
    process_id: str
    holders: Holders

    def next(self) -> Current:
        """Return what the member has next."""
        current = self.current
        match current.state:
            case S.STABLE:
                if current.epoch == self.target.epoch:
                    return current
                return self._advanced(current.epoch)
            case S.UNREVOKED_PARTITIONS:
                if self._still_has(current.pending_revocation):
                    return current
                return self._advanced(current.epoch + 1)
            case S.UNRELEASED_PARTITIONS:
                return self._advanced(current.epoch)

    def _still_has(self, revoked: Tasks) -> bool:
        return self.owned is None or self.owned.meets(revoked)

    def _advanced(self, epoch: int) -> Current:
        """Return what it has next. epoch: its own while it must revoke tasks."""
        has, target = self.current.assigned, self.target.tasks
        kept = [set(mine & wanted) for mine, wanted in zip(has, target, strict=True)]
        revoked = [set(mine - wanted) for mine, wanted in zip(has, target, strict=True)]
        missing = [wanted - mine for mine, wanted in zip(has, target, strict=True)]
        checks = (self._active_is_free, self._standby_is_free, self._warmup_is_free)
        added = [set(filter(free, tasks)) for free, tasks in zip(checks, missing, strict=True)]
        waits = any(len(more) < len(all_) for more, all_ in zip(added, missing, strict=True))
        _grant(has.active, added[1], kept[1])
        _grant(has.standby, added[2], kept[2], revoked[1])
        _grant(has.warmup, added[1], kept[1], revoked[2])
        for copies, of in ((1, has.standby), (2, has.warmup)):
            revoked[copies] -= of & target.active  # it becomes active where it is
        pending = _tasks(revoked)
        must_revoke = pending != Tasks() and self._still_has(pending)
        for copies, of in ((1, has.standby), (2, has.warmup)):
            promoted = set() if must_revoke else added[0]
            kept[copies] |= (of & target.active) - promoted
        since = {each: self.current.since_epoch(each) or 0 for each in has.active}
        if must_revoke:
            return Current(
                epoch, self.current.epoch, S.UNREVOKED_PARTITIONS, _tasks(kept), pending, since
            )
        state = S.UNRELEASED_PARTITIONS if waits else S.STABLE
        assigned = _tasks(kept).union(_tasks(added))
        since = {each: since.get(each, self.target.epoch) for each in assigned.active}
        return Current(self.target.epoch, self.current.epoch, state, assigned, since=since)

    # -- whether others have released a task

    def _active_is_free(self, task: Task) -> bool:
        return (
            self.holders.active_process(task) is None
            and not self._other_standby(task)
            and not self._other_warmup(task)
        )

    def _standby_is_free(self, task: Task) -> bool:
        runs_here = self.holders.active_process(task) == self.process_id
        by_other = runs_here and task not in self.current.assigned.active
        is_here = self.holders.has_standby(task, self.process_id)
        return not (by_other or is_here or self._other_warmup(task))

    def _warmup_is_free(self, task: Task) -> bool:
        runs_here = self.holders.active_process(task) == self.process_id
        is_here = self.holders.has_warmup(task, self.process_id)
        return not (runs_here or is_here or self._other_standby(task))

    def _other_standby(self, task: Task) -> bool:
        """Whether another member of the process has a standby task."""
        is_own = task in self.current.assigned.standby
        return not is_own and self.holders.has_standby(task, self.process_id)

    def _other_warmup(self, task: Task) -> bool:
        is_own = task in self.current.assigned.warmup
        return not is_own and self.holders.has_warmup(task, self.process_id)


def _grant(
    has: TaskSet, added: set[Task], kept: set[Task], revoked: set[Task] | None = None
) -> None:
    """Let a member keep at once the state of tasks that only change their type."""
    changed = has & added
    added -= changed
    kept |= changed
    if revoked is not None:
        revoked -= changed


def _tasks(types: list[set[Task]]) -> Tasks:
    return Tasks(*map(frozenset, types))
