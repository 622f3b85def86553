"""AlterShareGroupOffsets: sets where a share group without members begins (KIP-932).

v0   the first; flexible
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from ...messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import empty_group, is_new
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

E = ErrorCode
NO_TOPIC_ID: Final = bytes(16)
TopicIdPartition = tuple[bytes, int]


def handle(
    broker: Broker,
    request: Request,
    body: AlterShareGroupOffsetsRequest,
    _connection: Connection,
    now: float,
) -> AlterShareGroupOffsetsResponse | Outcome:
    """Set up the state of each partition anew, with its start offset; the group may be new."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    group = empty_group(coordinator, body.group_id)
    if group is E.GROUP_ID_NOT_FOUND and is_new(coordinator, body.group_id):
        group = coordinator.share_groups.create(body.group_id, now) or E.POLICY_VIOLATION
    if isinstance(group, ErrorCode):
        return error_response(body, group)
    offsets: dict[TopicIdPartition, int] = {}
    response = AlterShareGroupOffsetsResponse()
    results = _results(broker, body, response, offsets)

    def done(initialized: Mapping[tuple[bytes, int], Any], now: float) -> None:
        for key, each in initialized.items():
            results[key].error_code = each.error_code
            results[key].error_message = each.error_message
        settled = broker.groups.settle(request, response, (coordinator,), now)
        if not isinstance(settled, Outcome):
            broker.channel.respond(request.reply_to, settled, now)

    coordinator.share_groups.set_offsets(group, offsets, done, now)
    return DELAYED


def _results(
    broker: Broker,
    body: AlterShareGroupOffsetsRequest,
    response: AlterShareGroupOffsetsResponse,
    offsets: dict[TopicIdPartition, int],
) -> dict[TopicIdPartition, AlterShareGroupOffsetsResponsePartition]:
    """Add a result for each partition to the response; return those that exist, with offsets."""
    results: dict[TopicIdPartition, AlterShareGroupOffsetsResponsePartition] = {}
    for topic in body.topics:
        existing = broker.topics.get(topic.topic_name)
        topic_id = NO_TOPIC_ID if existing is None else existing.topic_id
        partitions = []
        for each in topic.partitions:
            result = AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index)
            if existing is None or existing.partition(each.partition_index) is None:
                result.error_code = E.UNKNOWN_TOPIC_OR_PARTITION
                result.error_message = E.UNKNOWN_TOPIC_OR_PARTITION.name
            else:
                offsets[topic_id, each.partition_index] = each.start_offset
                results[topic_id, each.partition_index] = result
            partitions.append(result)
        response.responses.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=topic_id, partitions=partitions
            )
        )

    return results


def error_response(
    _body: AlterShareGroupOffsetsRequest, error: ErrorCode
) -> AlterShareGroupOffsetsResponse:
    """Return a response with the error."""
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=error.name)
