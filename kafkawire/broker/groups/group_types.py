"""What a request does depends on the type of its group: classic, consumer, share, or Streams.

Consumer groups are those of KIP-848, share groups those of KIP-932, Streams groups of KIP-1071.

Invariant: a group is of one type. A classic group without members gives way to a consumer or a
Streams group, and each of these without members to a classic one; a classic or consumer group with
members may become the other (`migration`). Committed offsets stay. A share group stays one until it
is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, Protocol, TypeVar

from ...protocol import ErrorCode
from ..releases import before
from .classic_groups.group import Group
from .consumer_groups.checks import (
    CommittingMember,
    Refusal,
    commit_error,
    epoch_error,
)
from .consumer_groups.checks import may_commit_since as consumer_commits_since
from .consumer_groups.group import HeartbeatResult
from .consumer_groups.members import JOIN, HeartbeatRequest
from .consumer_groups.migration import upgraded
from .coordinator import Coordinator
from .requests import GroupRequest, Join, Joined
from .share_groups.group import ShareGroup
from .share_groups.members import ShareHeartbeat
from .streams_groups.checks import commit_error as streams_commit_error
from .streams_groups.checks import epoch_error as streams_epoch_error
from .streams_groups.checks import may_commit_since
from .streams_groups.members import HeartbeatResult as StreamsResult
from .streams_groups.members import StreamsHeartbeat

E = ErrorCode
COMMITS_SINCE_FROM: Final = "4.3"
"""From this release on, a commit may have an earlier epoch of its member (KIP-1251)."""
TopicIdPartition = tuple[bytes, int]


class DescribedGroup(Protocol):
    """A group in a response that describes groups."""

    error_code: int
    authorized_operations: int


D = TypeVar("D", bound=DescribedGroup)


def described(
    group_ids: Iterable[str],
    coordinator: Callable[[str], Coordinator | ErrorCode],
    describe: Callable[[str, Coordinator | ErrorCode], D],
    operations: int | None,
) -> tuple[list[D], list[Coordinator]]:
    """Describe each group, duplicates once; return also the coordinators that are here.

    coordinator: of a group, or why it is not here. operations: those that a client may carry out,
    None to leave them out.
    """
    coordinators = {each: coordinator(each) for each in dict.fromkeys(group_ids)}
    groups = [describe(*each) for each in coordinators.items()]
    for group in groups:
        if operations is not None and not group.error_code:
            group.authorized_operations = operations
    return groups, [each for each in coordinators.values() if not isinstance(each, ErrorCode)]


def absent_message(coordinator: Coordinator, group_id: str, kind: str) -> str:
    """Return why a group of a type cannot be described. kind: the type, as Kafka names it."""
    if coordinator.has(group_id):
        return f"Group {group_id} is not a {kind} group."
    return f"Group {group_id} not found."


def consumer_heartbeat(
    coordinator: Coordinator, request: HeartbeatRequest, now: float
) -> HeartbeatResult | Refusal:
    """Handle the heartbeat of a member of a consumer group."""
    if _is_of(request.group_id, coordinator.share_groups, coordinator.streams_groups):
        message = f"Group {request.group_id} is not a consumer group."
        return Refusal(E.GROUP_ID_NOT_FOUND, message)
    classic = coordinator.groups.get(request.group_id)
    if classic is None:
        return coordinator.consumer_groups.heartbeat(request, now)
    if request.member_epoch != JOIN:
        message = f"Group {request.group_id} is not a consumer group."
        return Refusal(E.GROUP_ID_NOT_FOUND, message)
    if not len(classic.members):
        coordinator.remove(classic, now)
        return coordinator.consumer_groups.heartbeat(request, now)
    return _upgrading_heartbeat(coordinator, classic, request, now)


def _upgrading_heartbeat(
    coordinator: Coordinator, classic: Group, request: HeartbeatRequest, now: float
) -> HeartbeatResult | Refusal:
    """Let a member join a classic group that has members: it becomes a consumer group."""
    groups = coordinator.consumer_groups
    upgrade = upgraded(classic, groups.config(classic.group_id), groups.topics, now)
    if isinstance(upgrade, Refusal):
        return upgrade
    coordinator.usage.forget(classic)  # its members are those of the other group
    result = groups.heartbeat(request, now, upgrade)
    if isinstance(result, Refusal):
        coordinator.usage.note(classic)
        return result
    del coordinator.groups[classic.group_id]
    for response in classic.end(E.REBALANCE_IN_PROGRESS):
        coordinator.respond(response, now)
    return result


def share_heartbeat(
    coordinator: Coordinator, request: ShareHeartbeat, now: float
) -> HeartbeatResult | Refusal:
    """Handle the heartbeat of a member of a share group."""
    others = coordinator.groups, coordinator.consumer_groups, coordinator.streams_groups
    if _is_of(request.group_id, *others):
        message = f"Group {request.group_id} is not a share group."
        return Refusal(E.GROUP_ID_NOT_FOUND, message)
    return coordinator.share_groups.heartbeat(request, now)


def streams_heartbeat(
    coordinator: Coordinator, request: StreamsHeartbeat, now: float
) -> StreamsResult | Refusal:
    """Handle the heartbeat of a member of a Streams group."""
    group_id = request.group_id
    classic = coordinator.groups.get(group_id)
    gives_way = classic is not None and request.joins and not len(classic.members)
    others = coordinator.consumer_groups, coordinator.share_groups
    if (classic is not None and not gives_way) or _is_of(group_id, *others):
        return Refusal(E.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    result = coordinator.streams_groups.heartbeat(request, now)
    if classic is not None and not isinstance(result, Refusal):
        coordinator.remove(classic, now)
    return result


def _is_of(group_id: str, *groups: Container[str]) -> bool:
    """Whether a group is of one of some types."""
    return any(group_id in each for each in groups)


def empty_group(coordinator: Coordinator, group_id: str) -> ShareGroup | ErrorCode:
    """Return a share group without members, whose offsets may be changed."""
    group = coordinator.share_groups.get(group_id)
    if group is None:
        return E.GROUP_ID_NOT_FOUND
    return E.NON_EMPTY_GROUP if group.population else group


def is_new(coordinator: Coordinator, group_id: str) -> bool:
    """Whether no group of any type has an id."""
    return not coordinator.has(group_id)


def classic_request(
    coordinator: Coordinator, group_id: str, request: GroupRequest, now: float
) -> bool:
    """Handle a request of the classic protocol; return whether its group exists.

    One that joins creates it. The response is sent now or later.
    """
    streams_group = coordinator.streams_groups.get(group_id)
    if streams_group is not None and isinstance(request, Join) and not streams_group.population:
        coordinator.streams_groups.forget(streams_group, now)  # as a consumer group below
    elif streams_group is not None or group_id in coordinator.share_groups:
        if _creates(request):
            refused = Joined(request.reply_to, E.INCONSISTENT_GROUP_PROTOCOL)
            coordinator.respond(refused, now)
        return _creates(request)
    consumer_group = coordinator.consumer_groups.get(group_id)
    if consumer_group is not None and (consumer_group.population or not isinstance(request, Join)):
        groups = coordinator.consumer_groups
        coordinator.respond(groups.handle_classic(consumer_group, request, now), now)
        return True
    if consumer_group is not None:  # also before a join that is refused, as in Kafka
        coordinator.consumer_groups.forget(consumer_group, now)
    group = coordinator.groups.get(group_id)
    if group is None and not _creates(request):
        return False
    coordinator.handle(group or coordinator.group(group_id, now), request, now)
    return True


def _creates(request: GroupRequest) -> bool:
    """Whether a request is of a client that joins without a member id."""
    return isinstance(request, Join) and not request.member_id


def stale_partitions(
    coordinator: Coordinator, member: CommittingMember, partitions: Iterable[TopicIdPartition]
) -> frozenset[TopicIdPartition]:
    """Return the partitions that a member with an earlier epoch may not commit: before 4.3, all."""
    streams_group = coordinator.streams_groups.get(member.group_id)
    if streams_group is not None:
        topics = coordinator.streams_groups.topics
        return frozenset(
            each
            for each in partitions
            if not may_commit_since(streams_group, member, topics.name(each[0]) or "", each[1])
        )
    group = coordinator.consumer_groups.get(member.group_id)
    if group is None or before(coordinator.context.release, COMMITS_SINCE_FROM):
        return frozenset(partitions)
    return frozenset(each for each in partitions if not consumer_commits_since(group, member, each))


def fetching_error(coordinator: Coordinator, member: CommittingMember) -> ErrorCode:
    """Return the error of a member that fetches offsets."""
    streams_group = coordinator.streams_groups.get(member.group_id)
    if streams_group is not None:
        return streams_epoch_error(streams_group, member)
    group = coordinator.consumer_groups.get(member.group_id)
    return E.NONE if group is None else epoch_error(group, member)


def member_error(
    coordinator: Coordinator, member: CommittingMember, version: int, now: float
) -> ErrorCode:
    """Return the error of a member that commits offsets; renews its session if it is classic.

    version: of OffsetCommit.
    """
    if member.group_id in coordinator.share_groups:
        return E.GROUP_ID_NOT_FOUND
    streams_group = coordinator.streams_groups.get(member.group_id)
    if streams_group is not None:
        return streams_commit_error(streams_group, member, version)
    consumer_group = coordinator.consumer_groups.get(member.group_id)
    if consumer_group is not None:
        return commit_error(consumer_group, member, version)
    group = coordinator.groups.get(member.group_id)
    if group is None:
        return E.NONE if member.epoch < 0 else E.ILLEGAL_GENERATION
    error = group.commit_error(member.member_id, member.epoch, member.instance_id, now)
    coordinator.perform(group, [], now)  # a session may have been renewed
    return error
