"""DescribeTopicPartitions: describes partitions page by page (KIP-966).

v0   the first; flexible
"""

from __future__ import annotations

from typing import Final

from ...configs.topic_names import topic_name_error
from ...messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from ...messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..metadata_cache import PartitionMetadata
from ..network.connection import Connection
from ..request import Request
from ..security.operations import TOPIC_OPERATIONS
from ..topics import NO_LEADER

E = ErrorCode
MOST: Final = "max.request.partition.size.limit"


def handle(
    broker: Broker,
    _request: Request,
    body: DescribeTopicPartitionsRequest,
    _connection: Connection,
    _now: float,
) -> DescribeTopicPartitionsResponse:
    """Describe topics ordered by name, from the cursor up to the limit."""
    topics = broker.topics
    names = {each.name for each in body.topics} or {topic.name for topic in topics}
    first, index = "", 0
    if body.cursor is not None:
        first, index = body.cursor.topic_name, body.cursor.partition_index
    if index < 0:
        return error_response(body, E.INVALID_REQUEST)
    room = min(max(1, body.response_partition_limit), broker.settings.number(MOST))
    response = DescribeTopicPartitionsResponse()
    for name in sorted(each for each in names if each >= first):
        topic = topics.get(name)
        if topic is None:
            if body.topics:
                response.topics.append(_unknown(name))
            continue
        start = index if name == first else 0
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=start)
            break
        shown = topic.partitions[start : start + room]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=[_partition(each) for each in shown],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        room -= len(shown)
        if start + len(shown) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=start + len(shown))
            break
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_valid = topic_name_error(name) is None
    error = E.UNKNOWN_TOPIC_OR_PARTITION if is_valid else E.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name)


def _partition(partition: PartitionMetadata) -> DescribeTopicPartitionsResponsePartition:
    led = partition.leader_id != NO_LEADER
    return DescribeTopicPartitionsResponsePartition(
        error_code=E.NONE if led else E.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=partition.offline,
    )


def error_response(
    body: DescribeTopicPartitionsRequest, error: ErrorCode
) -> DescribeTopicPartitionsResponse:
    """Return a response with the error for each topic."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error, name=each.name)
            for each in body.topics
        ]
    )
