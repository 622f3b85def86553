"""What a request does depends on the type of its group: classic, or consumer (KIP-848).

Invariant: a group is of one type. One without members gives way to one of the other type; its
committed offsets stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol import ErrorCode
from ..releases import before
from .consumer_groups.checks import (
    CommittingMember,
    Refusal,
    commit_error,
    may_commit_since,
)
from .consumer_groups.group import HeartbeatResult
from .consumer_groups.members import JOIN, HeartbeatRequest
from .coordinator import Coordinator

E = ErrorCode
COMMITS_SINCE_FROM: Final = "4.3"
"""From this release on, a commit may have an earlier epoch of its member (KIP-1251)."""
TopicIdPartition = tuple[bytes, int]


def consumer_heartbeat(
    coordinator: Coordinator, request: HeartbeatRequest, now: float
) -> HeartbeatResult | Refusal:
    """Handle the heartbeat of a member of a consumer group."""
    classic = coordinator.groups.get(request.group_id)
    if classic is not None and request.member_epoch == JOIN and not classic.population:
        coordinator.remove(classic, now)
    elif classic is not None:
        message = f"Group {request.group_id} is not a consumer group."
        return Refusal(E.GROUP_ID_NOT_FOUND, message)
    return coordinator.consumer_groups.heartbeat(request, now)


def classic_join_error(coordinator: Coordinator, group_id: str, now: float) -> ErrorCode:
    """Return the error of a client that joins by the classic protocol, or NONE."""
    consumer_group = coordinator.consumer_groups.get(group_id)
    if consumer_group is None:
        return E.NONE
    if consumer_group.population:
        return E.INCONSISTENT_GROUP_PROTOCOL
    coordinator.consumer_groups.forget(consumer_group, now)
    return E.NONE


def stale_partitions(
    coordinator: Coordinator, member: CommittingMember, partitions: Iterable[TopicIdPartition]
) -> frozenset[TopicIdPartition]:
    """Return the partitions that a member with an earlier epoch may not commit: before 4.3, all."""
    group = coordinator.consumer_groups.get(member.group_id)
    if group is None or before(coordinator.context.release, COMMITS_SINCE_FROM):
        return frozenset(partitions)
    return frozenset(each for each in partitions if not may_commit_since(group, member, each))


def member_error(
    coordinator: Coordinator, member: CommittingMember, version: int, now: float
) -> ErrorCode:
    """Return the error of a member that commits offsets; renews its session if it is classic.

    version: of OffsetCommit.
    """
    consumer_group = coordinator.consumer_groups.get(member.group_id)
    if consumer_group is not None:
        return commit_error(consumer_group, member, version)
    group = coordinator.groups.get(member.group_id)
    if group is None:
        return E.NONE if member.epoch < 0 else E.ILLEGAL_GENERATION
    error = group.commit_error(member.member_id, member.epoch, member.instance_id, now)
    coordinator.perform(group, [], now)  # a session may have been renewed
    return error
