"""Checks ConsumerGroupHeartbeat: its fields, and who sends it.

Invariant: a request that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ....protocol import ErrorCode
from .members import JOIN, LEAVE, LEAVE_STATIC, NOT_SET, Current, HeartbeatRequest, TopicPartition
from .metadata import ConsumerGroupMetadata

E = ErrorCode
CLIENT_MEMBER_ID_FROM: Final = 1
"""The version from which on clients choose their member ids (KIP-1082)."""
COMMIT_FROM: Final = 9
"""The version of OffsetCommit from which on clients understand the errors of member epochs."""
STALE: Final = E.STALE_MEMBER_EPOCH
ABANDON: Final = "The member must abandon all its partitions and rejoin."


class Refusal(NamedTuple):
    """Why a request is refused; the message is Kafka's."""

    error: ErrorCode
    message: str


def invalid_request(
    request: HeartbeatRequest, version: int, assignors: Sequence[str]
) -> Refusal | None:
    """Return why the fields of a request are not valid. assignors: those that it may name."""
    message = _invalid_field(request, version)
    if message is not None:
        return Refusal(E.INVALID_REQUEST, message)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        return Refusal(
            E.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    return None


def _invalid_field(request: HeartbeatRequest, version: int) -> str | None:
    epoch = request.member_epoch
    names_member = version >= CLIENT_MEMBER_ID_FROM or epoch > JOIN or epoch == LEAVE
    subscribes = request.topic_names is not None or request.topic_regex is not None
    joins = epoch == JOIN
    rules = (
        (names_member and not request.member_id, "MemberId can't be empty."),
        (not request.group_id, "GroupId can't be empty."),
        (request.instance_id == "", "InstanceId can't be empty."),
        (request.rack_id == "", "RackId can't be empty."),
        (
            joins and request.rebalance_timeout_ms == NOT_SET,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            joins and (request.owned != frozenset() or request.owned_topics != frozenset()),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            joins and not subscribes,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        (epoch == LEAVE_STATIC and request.instance_id is None, "InstanceId can't be null."),
        (epoch < LEAVE_STATIC, "MemberEpoch is invalid."),
    )
    return next((message for broken, message in rules if broken), None)


def identity_refusal(group: ConsumerGroupMetadata, request: HeartbeatRequest) -> Refusal | None:
    """Return why a member may not send a request."""
    if request.instance_id is None:
        return _dynamic_refusal(group, request)
    current_id = group.static_member(request.instance_id)
    if request.member_epoch == JOIN:
        return _join_refusal(group, request, current_id)
    if current_id is None:
        return Refusal(E.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if current_id != request.member_id:
        return Refusal(
            E.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced "
            f"by member {current_id}.",
        )
    return _epoch_refusal(group, request)


def _dynamic_refusal(group: ConsumerGroupMetadata, request: HeartbeatRequest) -> Refusal | None:
    if request.member_id in group.subscriptions:
        return _epoch_refusal(group, request)
    if request.member_epoch == JOIN:
        return _full_refusal(group)
    return Refusal(
        E.UNKNOWN_MEMBER_ID,
        f"Member {request.member_id} is not a member of group {group.group_id}.",
    )


def _join_refusal(
    group: ConsumerGroupMetadata, request: HeartbeatRequest, current_id: str | None
) -> Refusal | None:
    if current_id is None:
        is_member = request.member_id in group.subscriptions
        return None if is_member else _full_refusal(group)
    is_classic = group.subscriptions[current_id].classic is not None
    if is_classic or group.current.get(current_id, Current()).epoch == LEAVE_STATIC:
        return None
    return Refusal(
        E.UNRELEASED_INSTANCE_ID,
        f"Static member {request.member_id} with instance id {request.instance_id} cannot join the "
        f"group because the instance id is owned by {current_id} member.",
    )


def _full_refusal(group: ConsumerGroupMetadata) -> Refusal | None:
    size = group.config.max_size
    if group.population < size:
        return None
    return Refusal(
        E.GROUP_MAX_SIZE_REACHED,
        f"The consumer group has reached its maximum capacity of {size} members.",
    )


def _epoch_refusal(group: ConsumerGroupMetadata, request: HeartbeatRequest) -> Refusal | None:
    """Refuse a member with another epoch than its own, but one that missed the last response."""
    epoch, current = request.member_epoch, group.current.get(request.member_id, Current())
    if epoch <= JOIN or epoch == current.epoch:
        return None
    if epoch == current.previous_epoch < current.epoch and _owns_assigned(request, current):
        return None
    compared = "greater" if epoch > current.epoch else "smaller"
    return Refusal(
        E.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({current.epoch}). {ABANDON}",
    )


def _owns_assigned(request: HeartbeatRequest, current: Current) -> bool:
    """Whether a member has only what it is assigned; a topic without partitions counts, too."""
    if request.owned is None or not request.owned <= current.assigned:
        return False
    return request.owned_topics <= {topic_id for topic_id, _ in current.assigned}


class CommittingMember(NamedTuple):
    """Who commits or fetches offsets. epoch: or generation; negative for a client without one."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None

    @property
    def is_named(self) -> bool:
        """Whether it names a member at all."""
        return self.epoch != LEAVE or self.member_id != "" or self.instance_id is not None


def may_commit_since(
    group: ConsumerGroupMetadata, member: CommittingMember, partition: TopicPartition
) -> bool:
    """Whether a member with an earlier epoch has had a partition since then (KIP-1251)."""
    current = group.current.get(member.member_id, Current())
    since = current.since_epoch(partition)
    return since is not None and since <= member.epoch < current.epoch


def commit_error(group: ConsumerGroupMetadata, member: CommittingMember, version: int) -> ErrorCode:
    """Return the error of a member that commits offsets. version: of OffsetCommit."""
    if member.epoch < 0 and not group.population:
        return E.NONE
    subscription = group.subscriptions.get(member.member_id)
    if subscription is None:
        return E.UNKNOWN_MEMBER_ID
    if version < COMMIT_FROM and subscription.classic is None:
        return E.UNSUPPORTED_VERSION
    return epoch_error(group, member)


def transactional_commit_error(group: ConsumerGroupMetadata, member: CommittingMember) -> ErrorCode:
    """Return the error of a member that commits offsets in a transaction."""
    if not member.is_named or (member.epoch < 0 and not group.population):
        return E.NONE
    return epoch_error(group, member)


def epoch_error(group: ConsumerGroupMetadata, member: CommittingMember) -> ErrorCode:
    """Return the error of a member with another epoch than its own."""
    subscription = group.subscriptions.get(member.member_id)
    if subscription is None:
        return E.UNKNOWN_MEMBER_ID
    epoch = group.current.get(member.member_id, Current()).epoch
    stale = STALE if subscription.classic is None else E.ILLEGAL_GENERATION
    return E.NONE if member.epoch == epoch else stale
