"""ListOffsets: looks up offsets by timestamp.

v0   the first
v1   request -max_num_offsets; response +timestamp +offset -old_style_offsets
v2   request +isolation_level; response +throttle_time_ms
v3   no new fields │ throttled after the response
v4   request +current_leader_epoch; response +leader_epoch
v5   no new fields │ ambiguous errors are retriable
v6   flexible
v7   no new fields │ timestamp -3
v8   no new fields │ timestamp -4
v9   no new fields │ timestamp -5
v10  request +timeout_ms
v11  no new fields │ timestamp -6
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from ...messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..log.partition_log import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    PartitionLog,
)
from ..network.connection import Connection
from ..request import Request

E = ErrorCode
TIMESTAMP_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Special timestamp -> the first version that supports it."""
OLD_STYLE_TO: Final = 0
EPOCH_FROM: Final = 4
NO_EPOCH: Final = -1


def handle(
    broker: Broker, request: Request, body: ListOffsetsRequest, _connection: Connection, _now: float
) -> ListOffsetsResponse:
    """Look up each partition's offset."""
    times = Counter(
        (topic.name, requested.partition_index)
        for topic in body.topics
        for requested in topic.partitions
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _offset(broker, topic.name, requested, request.version, times)
                    for requested in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _offset(
    broker: Broker,
    topic: str,
    requested: ListOffsetsPartition,
    version: int,
    times: Counter[tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    index = requested.partition_index
    if times[topic, index] > 1:
        return _failed(index, E.INVALID_REQUEST)  # as in Kafka: a lookup is expensive
    partition, error = broker.replicas.led(topic, index, requested.current_leader_epoch)
    if partition is None or error:
        return _failed(index, error)
    if version < TIMESTAMP_SINCE.get(
        requested.timestamp, 0 if requested.timestamp >= 0 else version + 1
    ):
        return _failed(index, E.UNSUPPORTED_VERSION)
    if version <= OLD_STYLE_TO:
        offsets = _old_style(partition.log, requested.timestamp)[
            : max(0, requested.max_num_offsets)
        ]
        return ListOffsetsPartitionResponse(partition_index=index, old_style_offsets=offsets)
    found = partition.log.find(requested.timestamp)
    if found is None:
        return _failed(index, E.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= EPOCH_FROM else NO_EPOCH,
    )


def _old_style(log: PartitionLog, timestamp: int) -> list[int]:
    """List the base offsets of segments before a timestamp; this log is one segment."""
    if timestamp == LATEST:
        return sorted({log.log_end_offset, log.log_start_offset}, reverse=True)
    return [log.log_start_offset]


def _failed(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)


def error_response(body: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
    """Return a response with the error for each partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(each.partition_index, error) for each in topic.partitions],
            )
            for topic in body.topics
        ]
    )
