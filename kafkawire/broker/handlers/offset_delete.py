"""OffsetDelete: deletes committed offsets of unsubscribed topics (KIP-496).

v0   the first
"""

from __future__ import annotations

from ...messages.offset_delete_request import OffsetDeleteRequest
from ...messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.classic_groups.states import Kind
from ..groups.coordinator import Coordinator
from ..groups.expiration import CONSUMER, subscribed
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: OffsetDeleteRequest,
    _connection: Connection,
    now: float,
) -> OffsetDeleteResponse | Outcome:
    """Delete offsets, except those of topics that members are subscribed to."""
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    in_use = _in_use(coordinator, body.group_id)
    if isinstance(in_use, ErrorCode):
        return error_response(body, in_use)
    topics, deleted = [], []
    for topic in body.topics:
        responses = []
        for each in topic.partitions:
            partition = broker.topics.partition(topic.name, each.partition_index)
            code = E.NONE if partition is not None else E.UNKNOWN_TOPIC_OR_PARTITION
            if in_use is None or topic.name in in_use:
                code = E.GROUP_SUBSCRIBED_TO_TOPIC
            if not code:
                deleted.append((topic.name, each.partition_index))
            responses.append(
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=responses))
    coordinator.delete_offsets(body.group_id, dict.fromkeys(deleted), now)
    return broker.groups.settle(request, OffsetDeleteResponse(topics=topics), (coordinator,), now)


def _in_use(coordinator: Coordinator, group_id: str) -> frozenset[str] | ErrorCode | None:
    """Return the topics that the members of a group are subscribed to; None for all."""
    streams_group = coordinator.streams_groups.get(group_id)
    if streams_group is not None:
        return streams_group.source_topics
    consumer_group = coordinator.consumer_groups.get(group_id)
    if consumer_group is not None:
        return consumer_group.topic_names
    group = coordinator.groups.get(group_id)
    error = E.GROUP_ID_NOT_FOUND if group is None else group.admits(Kind.DELETE_OFFSETS)
    if group is None or error:
        return error
    if group.protocol_type == CONSUMER:
        return subscribed(group)
    return E.NON_EMPTY_GROUP if len(group.members) else frozenset()


def error_response(_body: OffsetDeleteRequest, error: ErrorCode) -> OffsetDeleteResponse:
    """Return a response with the error."""
    return OffsetDeleteResponse(error_code=error)
