"""Members of a consumer group that use the classic protocol (online migration, KIP-848).

Invariant: such a member is reconciled as any other, but only when it sends JoinGroup; its
generation is its member epoch, and no member is a leader.

    JoinGroup ─▶ revokes, or gets partitions     Heartbeat ─▶ REBALANCE_IN_PROGRESS: join again
    SyncGroup ─▶ what it has, as a ConsumerProtocolAssignment
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ....messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ....messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from ....messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ....protocol import ErrorCode
from ....protocol.versioned import PREFIX, encode_versioned, try_versioned
from ..requests import Heartbeat, HeartbeatResult, Join, Joined, Leave, Left, Sync, Synced
from ..topics import Topics
from .group import NEW, ConsumerGroup
from .members import JOIN, NOTHING, ClassicMember, HeartbeatRequest, MemberState, Partitions
from .metadata import JoinExpired, Migration, SyncExpired
from .records import by_topic

E = ErrorCode
CONSUMER: Final = "consumer"
"""The protocol type of consumers."""
NEWEST: Final = 3
"""The newest version of ConsumerProtocolAssignment."""


def join(
    group: ConsumerGroup,
    request: Join,
    topics: Topics,
    new_member_id: Callable[[], str],
    now: float,
    wall_ms: int,
) -> Joined:
    """Let a member join by a JoinGroup, or rejoin: it is reconciled as far as it can be."""
    has_id = request.member_id != ""
    member_id = request.member_id or new_member_id()
    error = _join_error(group, request, member_id)
    if error:
        return Joined(request.reply_to, error)
    if not has_id and request.requires_known_member_id and request.group_instance_id is None:
        return Joined(request.reply_to, E.MEMBER_ID_REQUIRED, member_id)
    heartbeat = as_heartbeat(group.group_id, member_id, request, topics)
    if heartbeat is None:
        return Joined(request.reply_to, E.INCONSISTENT_GROUP_PROTOCOL)
    if not has_id:
        group.replace_static(heartbeat)
    result = group.reconcile(heartbeat, topics, now, wall_ms, not _downgrades(group, heartbeat))
    group.deadlines.cancel(JoinExpired(member_id))
    group.deadlines.set(SyncExpired(member_id), now + request.rebalance_timeout)
    name, _ = request.protocols[0]
    return Joined(request.reply_to, E.NONE, member_id, result.member_epoch, CONSUMER, name)


def _join_error(group: ConsumerGroup, request: Join, member_id: str) -> ErrorCode:
    if group.config.migration is Migration.DISABLED:
        return E.INCONSISTENT_GROUP_PROTOCOL
    instance_id = request.group_instance_id
    current_id = group.static_member(instance_id)
    is_member = current_id is not None or member_id in group.subscriptions
    if not is_member and group.population >= group.config.max_size:
        return E.GROUP_MAX_SIZE_REACHED
    names = [name for name, _ in request.protocols]
    if request.protocol_type != CONSUMER or not group.supports(names):
        return E.INCONSISTENT_GROUP_PROTOCOL
    if request.member_id and instance_id is not None:
        return _identity_error(group, member_id, instance_id)
    return E.NONE


def as_heartbeat(
    group_id: str, member_id: str, request: Join, topics: Topics
) -> HeartbeatRequest | None:
    """Return the heartbeat that says the same as a JoinGroup; None if its metadata is malformed."""
    _, metadata = request.protocols[0]
    reading = try_versioned(ConsumerProtocolSubscription.__name__, metadata)
    if reading is None:
        return None
    subscription: ConsumerProtocolSubscription = reading.value
    return HeartbeatRequest(
        group_id,
        member_id,
        JOIN,
        request.group_instance_id,
        subscription.rack_id or None,
        int(request.rebalance_timeout * 1000),
        frozenset(subscription.topics),
        "",
        None,
        partitions_of(
            ((each.topic, each.partitions) for each in subscription.owned_partitions), topics
        ),
        request.client_id,
        request.client_host,
        ClassicMember(int(request.session_timeout * 1000), request.protocols),
    )


def _downgrades(group: ConsumerGroup, request: HeartbeatRequest) -> bool:
    """Whether only members of the classic protocol are left when one has joined.

    It has taken the place of the last member that used the consumer protocol; the classic group
    computes the next assignment.
    """
    before = group.subscriptions.get(request.member_id)
    if before is None or before.classic is not None or not group.config.migration.may_downgrade:
        return False
    fits = group.population <= group.config.classic_max_size
    return fits and group.classic_members == group.population - 1


def sync(group: ConsumerGroup, request: Sync, topics: Topics, now: float) -> Synced:
    """Return what a member has been assigned."""
    error = _member_error(group, request) or _sync_error(group, request, now)
    if error:
        return Synced(request.reply_to, error)
    member_id = request.member_id
    group.deadlines.cancel(SyncExpired(member_id))
    group.renew_session(member_id, now)
    _, metadata = _classic(group, member_id).protocols[0]
    assignment = encoded(group.current[member_id].assigned, version_of(metadata), topics)
    return Synced(
        request.reply_to, E.NONE, assignment, request.protocol_type, request.protocol_name
    )


def _sync_error(group: ConsumerGroup, request: Sync, now: float) -> ErrorCode:
    name, _ = _classic(group, request.member_id).protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
        return E.INCONSISTENT_GROUP_PROTOCOL
    current = group.current[request.member_id]
    if current.epoch < _epoch(group) and current.state is not MemberState.UNREVOKED_PARTITIONS:
        return _rejoin(group, request.member_id, now)
    return E.NONE


def heartbeat(group: ConsumerGroup, request: Heartbeat, now: float) -> HeartbeatResult:
    """Renew the session of a member; it has to rejoin if that brings it further."""
    error = _member_error(group, request)
    if error:
        return HeartbeatResult(request.reply_to, error)
    member_id = request.member_id
    group.renew_session(member_id, now)
    if _is_behind(group, member_id):
        error = _rejoin(group, member_id, now)
    return HeartbeatResult(request.reply_to, error)


def _is_behind(group: ConsumerGroup, member_id: str) -> bool:
    current = group.current[member_id]
    match current.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            missing = group.targets.get(member_id, NOTHING) - current.assigned
            return current.epoch < _epoch(group) or group.owners.keys().isdisjoint(missing)
        case MemberState.STABLE:
            return current.epoch < _epoch(group)


def _epoch(group: ConsumerGroup) -> int:
    """Return the epoch that members of the classic protocol have to reach.

    That of the target assignment. Where no other member is there whose heartbeat computes it, it is
    the group epoch: a JoinGroup computes it, too. Kafka waits for the next JoinGroup.
    """
    only_classic = group.classic_members == group.population
    return group.epoch if only_classic else group.assignment_epoch


def _rejoin(group: ConsumerGroup, member_id: str, now: float) -> ErrorCode:
    due = JoinExpired(member_id)
    if due not in group.deadlines:
        timeout = group.subscriptions[member_id].rebalance_timeout_ms / 1000
        group.deadlines.set(due, now + timeout)
    return E.REBALANCE_IN_PROGRESS


def leave(group: ConsumerGroup, request: Leave, topics: Topics) -> Left:
    """Remove members, also those of the consumer protocol."""
    leaving: dict[str, None] = {}
    errors = []
    for member_id, instance_id in request.members:
        current_id = group.static_member(instance_id) if not member_id else None
        member_id = current_id or member_id
        errors.append(_identity_error(group, member_id, instance_id))
        if not errors[-1]:
            leaving[member_id] = None
    if leaving:
        group.remove(leaving, topics)
    return Left(request.reply_to, E.NONE, tuple(errors))


def _classic(group: ConsumerGroup, member_id: str) -> ClassicMember:
    classic = group.subscriptions[member_id].classic
    assert classic is not None
    return classic


def _member_error(group: ConsumerGroup, request: Sync | Heartbeat) -> ErrorCode:
    member_id = request.member_id
    error = _identity_error(group, member_id, request.group_instance_id)
    if error:
        return error
    if group.subscriptions[member_id].classic is None:
        return E.UNKNOWN_MEMBER_ID
    epoch = group.current.get(member_id, NEW).epoch
    return E.NONE if request.generation_id == epoch else E.ILLEGAL_GENERATION


def _identity_error(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    if instance_id is None:
        return E.NONE if member_id in group.subscriptions else E.UNKNOWN_MEMBER_ID
    current_id = group.static_member(instance_id)
    if current_id is None:
        return E.UNKNOWN_MEMBER_ID
    return E.NONE if current_id == member_id else E.FENCED_INSTANCE_ID


# -- the embedded protocol of consumers


def version_of(metadata: bytes) -> int:
    """Return the version in which to send an assignment to a member with this metadata."""
    return max(0, min(int.from_bytes(metadata[:PREFIX], "big", signed=True), NEWEST))


def encoded(partitions: Partitions, version: int, topics: Topics) -> bytes:
    """Encode partitions as a ConsumerProtocolAssignment; without those of deleted topics."""
    named = [(topics.name(topic_id), indexes) for topic_id, indexes in by_topic(partitions).items()]
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=name, partitions=indexes)
            for name, indexes in named
            if name is not None
        ]
    )
    return encode_versioned(message, version)


def partitions_of(named: Iterable[tuple[str, Iterable[int]]], topics: Topics) -> Partitions:
    """Return partitions by the ids of their topics; without those of unknown topics."""
    of_topics = [(topics.find(name), indexes) for name, indexes in named]
    return frozenset(
        (topic.topic_id, index)
        for topic, indexes in of_topics
        if topic is not None
        for index in indexes
    )
