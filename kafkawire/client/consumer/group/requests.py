"""What a member of a group says to its coordinator, and the assignments members tell each other.

Law: what the leader decides goes through the broker unread; both layouts carry their own version.

    JoinGroup     subscription: topics, what is held, generation, user data; one for each assignor
    SyncGroup     assignment: topics with partitions, one for each member, from the leader
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
"""The version that subscriptions and assignments are written in; they only ever append."""
NO_GENERATION: Final = -1
STATIC_JOIN: Final = 5
STATIC_SINCE: Final = 3
"""Since which versions a group instance id can be said: JoinGroup; all others."""
LONGEST_REASON: Final = 255


class Identity(NamedTuple):
    """Who a member is in its group: -1 and "" for who is not in it."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


class Offer(NamedTuple):
    """What a member says when it joins.

    owned: what it keeps while the group rebalances; held, held_generation: what it was assigned
    last, and in which generation, even if it gave that up.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    held: tuple[TopicPartition, ...] = ()
    held_generation: int = NO_GENERATION


def subscription(offer: Offer, assignor: Assignor, generation: int, rack: str) -> bytes:
    """Write what a member tells the leader, for one assignor."""
    owned = [
        OwnedTopic(topic=topic, partitions=numbers)
        for topic, numbers in by_topic(offer.owned).items()
    ]
    message = ConsumerProtocolSubscription(
        topics=sorted(offer.topics),
        user_data=assignor.user_data(offer.held, offer.held_generation),
        owned_partitions=owned,
        generation_id=generation,
        rack_id=rack or None,
    )
    return encode_versioned(message, NEWEST)


def join(config: ConsumerConfig, me: Identity, offer: Offer, reason: str) -> Body:
    """Ask to be in the next generation of the group."""
    protocols = [
        JoinGroupRequestProtocol(
            name=each.name,
            metadata=subscription(offer, each, me.generation_id, config.client_rack),
        )
        for each in config.assignors
    ]
    message = JoinGroupRequest(
        group_id=config.group_id or "",
        session_timeout_ms=round(config.session_timeout_s * 1000),
        rebalance_timeout_ms=round(config.max_poll_interval_s * 1000),
        member_id=me.member_id,
        group_instance_id=me.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason[:LONGEST_REASON],
    )
    return Same(message, 0 if me.group_instance_id is None else STATIC_JOIN, 9)


def sync(group_id: str, me: Identity, protocol: str, assignments: Assignments) -> Body:
    """Ask for our assignment; from the leader, with everybody's."""
    message = SyncGroupRequest(
        group_id=group_id,
        generation_id=me.generation_id,
        member_id=me.member_id,
        group_instance_id=me.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=assignment(partitions))
            for member, partitions in assignments.items()
        ],
    )
    return Same(message, 0 if me.group_instance_id is None else STATIC_SINCE, 5)


def heartbeat(group_id: str, me: Identity) -> Body:
    """Say that we are alive."""
    message = HeartbeatRequest(
        group_id=group_id,
        generation_id=me.generation_id,
        member_id=me.member_id,
        group_instance_id=me.group_instance_id,
    )
    return Same(message, 0 if me.group_instance_id is None else STATIC_SINCE, 4)


def leave(group_id: str, me: Identity, reason: str) -> Body:
    """Say that we are gone, and why (KIP-800)."""

    def make(version: int) -> Message:
        if version < STATIC_SINCE:
            return LeaveGroupRequest(group_id=group_id, member_id=me.member_id)
        member = MemberIdentity(
            member_id=me.member_id,
            group_instance_id=me.group_instance_id,
            reason=reason[:LONGEST_REASON],
        )
        return LeaveGroupRequest(group_id=group_id, members=[member])

    return Varying(make, 0 if me.group_instance_id is None else STATIC_SINCE, 5)


def members_of(response: JoinGroupResponse, assignor: Assignor) -> tuple[Member, ...]:
    """Read what the members said of themselves; DecodeError if one of them cannot be read."""
    return tuple(assignor.understand(_member(each)) for each in response.members)


def _member(said: JoinGroupResponseMember) -> Member:
    _, message = decode_versioned("ConsumerProtocolSubscription", said.metadata)
    assert isinstance(message, ConsumerProtocolSubscription)
    return Member(
        said.member_id,
        tuple(message.topics),
        tuple(
            TopicPartition(each.topic, number)
            for each in message.owned_partitions
            for number in each.partitions
        ),
        message.generation_id,
        said.group_instance_id,
        message.rack_id,
        message.user_data,
    )


def assignment(partitions: Sequence[TopicPartition]) -> bytes:
    """Write what a member gets."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )
    return encode_versioned(message, NEWEST)


def assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Read what we got, in ascending order; no bytes are no partitions."""
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
