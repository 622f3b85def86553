"""Builds the requests of a group member, and the subscriptions and assignments inside them.

The broker does not read subscriptions and assignments; both carry their own version.

    JoinGroup     subscription: topics, owned partitions, generation, user data; one per assignor
    SyncGroup     assignment: topics with partitions; one per member, from the leader
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ....messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ....messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from ....messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ....messages.consumer_protocol_subscription import TopicPartition as OwnedTopic
from ....messages.heartbeat_request import HeartbeatRequest
from ....messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from ....messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from ....messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from ....messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from ....primitives import Message
from ....protocol.versioned import decode_versioned, encode_versioned
from ...requests import Body, Same, Varying
from ..assignors import Assignments, Assignor, Member
from ..configuration import ConsumerConfig
from ..partitions import TopicPartition, by_topic

PROTOCOL_TYPE: Final = "consumer"
NEWEST: Final = 3
"""The version of encoded subscriptions and assignments; newer versions only append fields."""
NO_GENERATION: Final = -1
STATIC_JOIN_VERSION: Final = 5
STATIC_VERSION: Final = 3
"""The first versions with a group instance id: of JoinGroup, of the other requests."""
MAX_REASON: Final = 255


class Identity(NamedTuple):
    """The identity of a member in its group; -1 and "" outside of the group."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


class JoinMetadata(NamedTuple):
    """What a member sends when it joins.

    owned: partitions it keeps during the rebalance. held, held_generation: its last assignment and
    the generation of that, even if the partitions are revoked.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    held: tuple[TopicPartition, ...] = ()
    held_generation: int = NO_GENERATION


def subscription(
    join_metadata: JoinMetadata, assignor: Assignor, generation: int, rack: str
) -> bytes:
    """Encode a member's subscription for one assignor."""
    owned = [
        OwnedTopic(topic=topic, partitions=numbers)
        for topic, numbers in by_topic(join_metadata.owned).items()
    ]
    message = ConsumerProtocolSubscription(
        topics=sorted(join_metadata.topics),
        user_data=assignor.user_data(join_metadata.held, join_metadata.held_generation),
        owned_partitions=owned,
        generation_id=generation,
        rack_id=rack or None,
    )
    return encode_versioned(message, NEWEST)


def join(
    config: ConsumerConfig, identity: Identity, join_metadata: JoinMetadata, reason: str
) -> Body:
    """Build a JoinGroup request."""
    protocols = [
        JoinGroupRequestProtocol(
            name=each.name,
            metadata=subscription(join_metadata, each, identity.generation_id, config.client_rack),
        )
        for each in config.assignors
    ]
    message = JoinGroupRequest(
        group_id=config.group_id or "",
        session_timeout_ms=round(config.session_timeout_s * 1000),
        rebalance_timeout_ms=round(config.max_poll_interval_s * 1000),
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason[:MAX_REASON],
    )
    return Same(message, 0 if identity.group_instance_id is None else STATIC_JOIN_VERSION, 9)


def sync(group_id: str, identity: Identity, protocol: str, assignments: Assignments) -> Body:
    """Build a SyncGroup request; assignments: all members' from the leader, else empty."""
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=assignment(partitions))
            for member, partitions in assignments.items()
        ],
    )
    return Same(message, 0 if identity.group_instance_id is None else STATIC_VERSION, 5)


def heartbeat(group_id: str, identity: Identity) -> Body:
    """Build a Heartbeat request."""
    message = HeartbeatRequest(
        group_id=group_id,
        generation_id=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
    )
    return Same(message, 0 if identity.group_instance_id is None else STATIC_VERSION, 4)


def leave(group_id: str, identity: Identity, reason: str) -> Body:
    """Build a LeaveGroup request with a reason (KIP-800)."""

    def make(version: int) -> Message:
        if version < STATIC_VERSION:
            return LeaveGroupRequest(group_id=group_id, member_id=identity.member_id)
        member = MemberIdentity(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            reason=reason[:MAX_REASON],
        )
        return LeaveGroupRequest(group_id=group_id, members=[member])

    return Varying(make, 0 if identity.group_instance_id is None else STATIC_VERSION, 5)


def decode_members(response: JoinGroupResponse, assignor: Assignor) -> tuple[Member, ...]:
    """Decode the subscriptions of all members. Raises DecodeError if one is malformed."""
    return tuple(assignor.understand(_member(each)) for each in response.members)


def _member(member: JoinGroupResponseMember) -> Member:
    _, message = decode_versioned("ConsumerProtocolSubscription", member.metadata)
    assert isinstance(message, ConsumerProtocolSubscription)
    return Member(
        member.member_id,
        tuple(message.topics),
        tuple(
            TopicPartition(each.topic, number)
            for each in message.owned_partitions
            for number in each.partitions
        ),
        message.generation_id,
        member.group_instance_id,
        message.rack_id,
        message.user_data,
    )


def assignment(partitions: Sequence[TopicPartition]) -> bytes:
    """Encode the assignment of a member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )
    return encode_versioned(message, NEWEST)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode an assignment, in ascending order; no bytes are no partitions."""
    if not data:
        return ()
    _, message = decode_versioned("ConsumerProtocolAssignment", data)
    assert isinstance(message, ConsumerProtocolAssignment)
    return tuple(
        sorted(
            TopicPartition(each.topic, number)
            for each in message.assigned_partitions
            for number in each.partitions
        )
    )


def named(assignors: Sequence[Assignor]) -> Mapping[str, Assignor]:
    """Index assignors by name."""
    return {each.name: each for each in assignors}
