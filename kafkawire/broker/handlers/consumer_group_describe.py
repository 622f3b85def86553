"""ConsumerGroupDescribe: returns the epochs, members and assignments of consumer groups (KIP-848).

v0   the first; flexible
v1   response +member_type
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.group import NEW, ConsumerGroup
from ..groups.consumer_groups.members import NOTHING, Partitions
from ..groups.consumer_groups.records import by_topic
from ..groups.coordinator import Coordinator
from ..groups.group_types import absent_message, described
from ..network.connection import Connection
from ..request import Outcome, Request
from ..security.operations import GROUP_OPERATIONS

E = ErrorCode
CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1
TYPES_FROM: Final = 1
UNKNOWN_TYPE: Final = -1


def handle(
    broker: Broker,
    request: Request,
    body: ConsumerGroupDescribeRequest,
    _connection: Connection,
    now: float,
) -> ConsumerGroupDescribeResponse | Outcome:
    """Describe each group, duplicates once."""
    groups, used = described(
        body.group_ids,
        broker.coordinator,
        lambda group_id, coordinator: _described(broker, coordinator, group_id, request.version),
        GROUP_OPERATIONS if body.include_authorized_operations else None,
    )
    return broker.groups.settle(request, ConsumerGroupDescribeResponse(groups=groups), used, now)


def _described(
    broker: Broker, coordinator: Coordinator | ErrorCode, group_id: str, version: int
) -> DescribedGroup:
    if isinstance(coordinator, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=coordinator)
    group = coordinator.consumer_groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=E.GROUP_ID_NOT_FOUND,
            error_message=absent_message(coordinator, group_id, "consumer"),
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=_members(broker, group, version),
    )


def _members(broker: Broker, group: ConsumerGroup, version: int) -> list[Member]:
    def assignment(partitions: Partitions) -> Assignment:
        return _assignment(partitions, lambda topic_id: _name(broker, topic_id))

    members = []
    for member_id, subscription in group.subscriptions.items():
        current = group.current.get(member_id, NEW)
        member_type = CONSUMER_MEMBER if subscription.classic is None else CLASSIC_MEMBER
        members.append(
            Member(
                member_id=member_id,
                instance_id=subscription.instance_id,
                rack_id=subscription.rack_id,
                member_epoch=current.epoch,
                client_id=subscription.client_id,
                client_host=subscription.client_host,
                subscribed_topic_names=sorted(subscription.topic_names),
                subscribed_topic_regex=subscription.topic_regex,
                assignment=assignment(current.assigned | current.pending_revocation),
                target_assignment=assignment(group.targets.get(member_id, NOTHING)),
                member_type=member_type if version >= TYPES_FROM else UNKNOWN_TYPE,
            )
        )
    return members


def _assignment(partitions: Partitions, name: Callable[[bytes], str | None]) -> Assignment:
    topics = []
    for topic_id, indexes in by_topic(partitions).items():
        topic_name = name(topic_id)
        if topic_name is not None:  # not of a deleted topic
            topics.append(
                TopicPartitions(topic_id=topic_id, topic_name=topic_name, partitions=indexes)
            )
    return Assignment(topic_partitions=topics)


def _name(broker: Broker, topic_id: bytes) -> str | None:
    topic = broker.topics.by_id(topic_id)
    return None if topic is None else topic.name


def error_response(
    body: ConsumerGroupDescribeRequest, error: ErrorCode
) -> ConsumerGroupDescribeResponse:
    """Return a response with the error for each group."""
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in body.group_ids]
    )
