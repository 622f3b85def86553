"""DescribeShareGroupOffsets: returns where share groups are in their partitions (KIP-932).

v0   the first; flexible
v1   response +lag │ KIP-1226
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ...messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...protocol.error_code import error_of
from ..broker import Broker
from ..groups.consumer_groups.records import by_topic
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

E = ErrorCode
UNKNOWN: Final = -1
NO_TOPIC_ID: Final = bytes(16)
LARGEST_LAG: Final = (1 << 63) - 1
"""The start offset of a group may be any, also one far below 0."""
Then = Callable[[float], None]
Summaries = Mapping[tuple[bytes, int], Any]


def handle(
    broker: Broker,
    request: Request,
    body: DescribeShareGroupOffsetsRequest,
    _connection: Connection,
    now: float,
) -> DescribeShareGroupOffsetsResponse | Outcome:
    """Read the start offsets of each group, and compare them with the ends of partitions.

    Groups and topics that do not exist have no offsets, and no error, as in Kafka.
    """
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    response = DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group_id=each.group_id) for each in body.groups
        ]
    )
    left = len(body.groups) + 1

    def finish(now: float) -> None:
        nonlocal left
        left -= 1
        if not left:
            broker.channel.respond(request.reply_to, response, now)

    for group, described in zip(body.groups, response.groups, strict=True):
        _describe(broker, group, described, finish, now)
    finish(now)
    return DELAYED


def _describe(
    broker: Broker,
    requested: DescribeShareGroupOffsetsRequestGroup,
    response: DescribeShareGroupOffsetsResponseGroup,
    then: Then,
    now: float,
) -> None:
    """Describe one group."""
    coordinator = broker.coordinator(requested.group_id)
    if isinstance(coordinator, ErrorCode):
        response.error_code, response.error_message = coordinator, coordinator.name
        then(now)
        return
    group = coordinator.share_groups.get(requested.group_id)
    partitions = [] if group is None else [*group.state_partitions.initialized]
    if requested.topics is not None:
        partitions = []
        for topic in requested.topics:
            existing = broker.topics.get(topic.topic_name)
            if existing is None:
                response.topics.append(_unknown(topic.topic_name, topic.partitions))
            else:
                partitions += [(existing.topic_id, index) for index in topic.partitions]

    def summarized(results: Summaries, now: float) -> None:
        def looked_up(ends: Mapping[TopicIdPartition, int], now: float) -> None:
            for topic_id, indexes in by_topic(results).items():
                response.topics.append(
                    DescribeShareGroupOffsetsResponseTopic(
                        topic_name=broker.metadata.topic_name(topic_id),
                        topic_id=topic_id,
                        partitions=[
                            _partition(
                                results[topic_id, at], ends.get(TopicIdPartition(topic_id, at))
                            )
                            for at in indexes
                        ],
                    )
                )
            then(now)

        broker.end_offsets.look_up([TopicIdPartition(*each) for each in results], looked_up, now)

    coordinator.share_groups.summaries(requested.group_id, partitions, summarized, now)


def _partition(result: Any, end: int | None) -> DescribeShareGroupOffsetsResponsePartition:
    """Return a partition. result: what the share coordinator has. end: of the partition."""
    error = error_of(result.error_code)
    if error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=result.partition,
            start_offset=UNKNOWN,
            error_code=error,
            error_message=result.error_message,
        )
    is_known = end is not None and UNKNOWN not in (
        result.start_offset,
        result.delivery_complete_count,
    )
    lag = UNKNOWN
    if is_known and end is not None:
        lag = end - result.start_offset - result.delivery_complete_count
        lag = min(max(0, lag), LARGEST_LAG)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=result.partition,
        start_offset=result.start_offset,
        leader_epoch=result.leader_epoch,
        lag=lag,
    )


def _unknown(name: str, indexes: list[int]) -> DescribeShareGroupOffsetsResponseTopic:
    """Return a topic that does not exist."""
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=NO_TOPIC_ID,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=UNKNOWN)
            for index in indexes
        ],
    )


def error_response(
    body: DescribeShareGroupOffsetsRequest, error: ErrorCode
) -> DescribeShareGroupOffsetsResponse:
    """Return a response with the error for each group."""
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group_id=each.group_id, error_code=error)
            for each in body.groups
        ]
    )
