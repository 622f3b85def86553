"""Moves a member towards its target assignment, as Kafka's CurrentAssignmentBuilder.

Invariant: a member gets a partition when no other member has it, and the epoch of the target when
it has revoked all that others are to get.

    STABLE ─▶ UNREVOKED_PARTITIONS ─▶ UNRELEASED_PARTITIONS ─▶ STABLE
              (revokes what it must)   (waits for others)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .members import Current, MemberState, Partitions, TopicPartition

S = MemberState


class Target(NamedTuple):
    """The target assignment of a member, and the epoch of that of its group."""

    epoch: int
    partitions: Partitions


def reconciled(
    current: Current,
    target: Target,
    owned: Partitions | None,
    is_free: Callable[[TopicPartition], bool],
) -> Current:
    """Return what a member has next. owned: what it says that it has, None if that is unchanged."""
    match current.state:
        case S.STABLE:
            if current.epoch == target.epoch:
                return current
            return _next(current, target, owned, is_free)
        case S.UNREVOKED_PARTITIONS:
            if _owns(owned, current.pending_revocation):
                return current
            return _next(current, target, owned, is_free)
        case S.UNRELEASED_PARTITIONS:
            return _next(current, target, owned, is_free)


def _owns(owned: Partitions | None, revoked: Partitions) -> bool:
    return owned is None or not owned.isdisjoint(revoked)


def _next(
    current: Current,
    target: Target,
    owned: Partitions | None,
    is_free: Callable[[TopicPartition], bool],
) -> Current:
    kept = current.assigned & target.partitions
    revoked = current.assigned - target.partitions
    since = {each: current.since.get(each, current.epoch) for each in current.assigned}
    if revoked and _owns(owned, revoked):
        return Current(current.epoch, current.epoch, S.UNREVOKED_PARTITIONS, kept, revoked, since)
    added = target.partitions - kept
    released = frozenset(filter(is_free, added))
    state = S.STABLE if released == added else S.UNRELEASED_PARTITIONS
    since = {each: since.get(each, target.epoch) for each in kept | released}
    return Current(target.epoch, current.epoch, state, kept | released, since=since)
