"""Groups whose assignments their coordinator computes (KIP-848), and other groups of consumers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client.failures import RequestFailed
from ...client.requests import Reason
from ...messages.api_key import ApiKey
from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from ...messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ...messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from ...messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ...protocol.error_code import ErrorCode
from ...protocol.versioned import encode_versioned, try_versioned
from .calls import CallRunner, check_group, group_row
from .group_values import ConsumerGroupInfo, ConsumerMemberInfo, GroupInfo, MemberInfo

PROTOCOL_TYPE: Final = "consumer"
CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
"""Types of groups."""
IS_CLASSIC: Final[Mapping[int, bool]] = {0: True, 1: False}
"""Whether a member type of ConsumerGroupDescribe from version 1 on is the classic protocol."""
MEMBER_VERSION: Final = 0
"""Version of ConsumerProtocolSubscription and -Assignment in `MemberInfo`."""


async def describe(calls: CallRunner, group_id: str) -> DescribedGroup | None:
    """Describe a group; None if there is no such group of this kind, or no broker that knows it."""
    try:
        row = await group_row(
            calls,
            group_id,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ConsumerGroupDescribeResponse,
            lambda _: ConsumerGroupDescribeRequest(group_ids=[group_id]),
            lambda response: response.groups,
        )
    except RequestFailed as error:
        if error.reason is Reason.NO_VERSION:
            return None
        raise
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check_group(row, group_id)
    return row


def consumer_group_info(row: DescribedGroup) -> ConsumerGroupInfo:
    """Convert a group of a response."""
    return ConsumerGroupInfo(
        row.group_id,
        CONSUMER,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        row.assignor_name,
        tuple(sorted(map(_consumer, row.members))),
    )


def classic_group_info(group: GroupInfo) -> ConsumerGroupInfo:
    """Convert a group of the classic protocol, with what its consumers wrote."""
    members = tuple(sorted(map(_classic_consumer, group.members)))
    return ConsumerGroupInfo(
        group.group_id, CLASSIC, group.state, None, None, group.protocol, members
    )


def group_info(row: DescribedGroup) -> GroupInfo:
    """Convert a group of a response."""
    members = tuple(map(_member, row.members))
    return GroupInfo(row.group_id, row.group_state, PROTOCOL_TYPE, row.assignor_name, members)


def _member(member: Member) -> MemberInfo:
    subscription = ConsumerProtocolSubscription(topics=member.subscribed_topic_names)
    return MemberInfo(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        encode_versioned(subscription, MEMBER_VERSION),
        encode_versioned(_assignment(member.assignment), MEMBER_VERSION),
    )


def _assignment(assignment: Assignment) -> ConsumerProtocolAssignment:
    """Convert an assignment to that which members of classic groups have."""
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=topic.topic_name, partitions=topic.partitions)
            for topic in assignment.topic_partitions
        ]
    )


def _consumer(member: Member) -> ConsumerMemberInfo:
    return ConsumerMemberInfo(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex or None,  # Kafka returns an empty one
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        IS_CLASSIC.get(member.member_type),
    )


def _partitions(assignment: Assignment) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted(
            (topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def _classic_consumer(member: MemberInfo) -> ConsumerMemberInfo:
    """Convert a member; what is not encoded as Kafka's consumers do is left out."""
    subscription = try_versioned(ConsumerProtocolSubscription.__name__, member.metadata)
    assignment = try_versioned(ConsumerProtocolAssignment.__name__, member.assignment)
    topics: list[str] = [] if subscription is None else subscription.value.topics
    assigned: list[AssignedTopic] = (
        [] if assignment is None else assignment.value.assigned_partitions
    )
    return ConsumerMemberInfo(
        member.member_id,
        member.group_instance_id,
        None if subscription is None else subscription.value.rack_id,
        None,
        member.client_id,
        member.client_host,
        tuple(sorted(topics)),
        None,
        tuple(sorted((row.topic, partition) for row in assigned for partition in row.partitions)),
        None,
        True,
    )
