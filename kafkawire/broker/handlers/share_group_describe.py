"""ShareGroupDescribe: returns the epochs, members and assignments of share groups (KIP-932).

v0   the first; flexible │ early access in 4.0, not served
v1   no new fields
"""

from __future__ import annotations

from ...messages.share_group_describe_request import ShareGroupDescribeRequest
from ...messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.members import Partitions
from ..groups.consumer_groups.records import by_topic
from ..groups.group_types import absent_message
from ..groups.share_groups.assignor import SIMPLE
from ..groups.share_groups.group import ShareGroup
from ..groups.share_groups.metadata import NEW
from ..network.connection import Connection
from ..request import Outcome, Request
from ..security.operations import GROUP_OPERATIONS

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: ShareGroupDescribeRequest,
    _connection: Connection,
    now: float,
) -> ShareGroupDescribeResponse | Outcome:
    """Describe each group, duplicates once."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    requested = dict.fromkeys(body.group_ids)
    groups = [_described(broker, group_id) for group_id in requested]
    if body.include_authorized_operations:
        for each in groups:
            if not each.error_code:
                each.authorized_operations = GROUP_OPERATIONS
    used = [each for each in map(broker.coordinator, requested) if not isinstance(each, E)]
    return broker.groups.settle(request, ShareGroupDescribeResponse(groups=groups), used, now)


def _described(broker: Broker, group_id: str) -> DescribedGroup:
    coordinator = broker.coordinator(group_id)
    if isinstance(coordinator, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=coordinator)
    group = coordinator.share_groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=E.GROUP_ID_NOT_FOUND,
            error_message=absent_message(coordinator, group_id, "share"),
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SIMPLE,
        members=_members(broker, group),
    )


def _members(broker: Broker, group: ShareGroup) -> list[Member]:
    members = []
    for member_id, subscription in group.subscriptions.items():
        current = group.current.get(member_id, NEW)
        members.append(
            Member(
                member_id=member_id,
                rack_id=subscription.rack_id,
                member_epoch=current.epoch,
                client_id=subscription.client_id,
                client_host=subscription.client_host,
                subscribed_topic_names=sorted(subscription.topic_names),
                assignment=_assignment(broker, current.assigned),
            )
        )
    return members


def _assignment(broker: Broker, partitions: Partitions) -> Assignment:
    topics = []
    for topic_id, indexes in by_topic(partitions).items():
        topic = broker.topics.by_id(topic_id)
        if topic is not None:  # not of a deleted topic
            topics.append(
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=indexes)
            )
    return Assignment(topic_partitions=topics)


def error_response(body: ShareGroupDescribeRequest, error: ErrorCode) -> ShareGroupDescribeResponse:
    """Return a response with the error for each group."""
    return ShareGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in body.group_ids]
    )
