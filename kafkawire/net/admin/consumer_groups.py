"""Groups whose assignments their coordinator computes (KIP-848), in the form of all groups."""

from __future__ import annotations

from typing import Final

from ...client.failures import RequestFailed
from ...client.requests import Coordinator, Reason
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
from ...protocol.versioned import encode_versioned
from .calls import CallRunner, check, only
from .group_values import GroupInfo, MemberInfo

PROTOCOL_TYPE: Final = "consumer"
MEMBER_VERSION: Final = 0
"""Version of ConsumerProtocolSubscription and -Assignment in `MemberInfo`."""


async def describe_group(calls: CallRunner, to: Coordinator, group_id: str) -> GroupInfo | None:
    """Describe a group; None if there is no such group of this kind, or no broker that knows it."""
    try:
        response = await calls.call(
            to,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ConsumerGroupDescribeResponse,
            lambda _: ConsumerGroupDescribeRequest(group_ids=[group_id]),
            lambda response: [row.error_code for row in response.groups],
        )
    except RequestFailed as error:
        if error.reason is Reason.NO_VERSION:
            return None
        raise
    row = only(response.groups, f"group {group_id}")
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check(row.error_code, f"group {group_id}", row.error_message)
    return group_info(row)


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
