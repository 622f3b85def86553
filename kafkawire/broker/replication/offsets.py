"""Looks up offsets: by timestamp, and the ends of leader epochs.

Law: only the leader knows them.
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
from ...messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from ...messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ...protocol import ErrorCode
from ..log.partition_log import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    PartitionLog,
)
from .replica_manager import ReplicaManager

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
NO_OFFSET: Final = -1


def list_offsets(
    replicas: ReplicaManager, body: ListOffsetsRequest, version: int
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
                    _offset(replicas, topic.name, requested, version, times)
                    for requested in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _offset(
    replicas: ReplicaManager,
    topic: str,
    requested: ListOffsetsPartition,
    version: int,
    times: Counter[tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    index = requested.partition_index
    wrong = lookup_error(requested, version, times[topic, index])
    if wrong is E.INVALID_REQUEST:
        return offset_failed(index, wrong)
    partition, error = replicas.led(topic, index, requested.current_leader_epoch)
    if partition is None or error:
        return offset_failed(index, error)
    if wrong:
        return offset_failed(index, wrong)
    if version <= OLD_STYLE_TO:
        offsets = _old_style(partition.log, requested.timestamp)[
            : max(0, requested.max_num_offsets)
        ]
        return ListOffsetsPartitionResponse(partition_index=index, old_style_offsets=offsets)
    found = partition.log.find(requested.timestamp)
    if found is None:
        return offset_failed(index, E.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= EPOCH_FROM else NO_EPOCH,
    )


def lookup_error(requested: ListOffsetsPartition, version: int, times: int) -> ErrorCode | None:
    """Return the error of a lookup that need not be looked up, NONE if there is nothing to find.

    times: how often the request has the partition. Returns None for a lookup that is to be made.
    """
    if times > 1:
        return E.INVALID_REQUEST  # as in Kafka: a lookup is expensive
    timestamp = requested.timestamp
    if version < TIMESTAMP_SINCE.get(timestamp, 0 if timestamp >= 0 else version + 1):
        return E.UNSUPPORTED_VERSION
    return E.NONE if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD) else None


def _old_style(log: PartitionLog, timestamp: int) -> list[int]:
    """List the base offsets of segments before a timestamp; this log is one segment."""
    if timestamp == LATEST:
        return sorted({log.log_end_offset, log.log_start_offset}, reverse=True)
    return [log.log_start_offset]


def offset_failed(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    """Return the response of a partition with an error."""
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)


def offsets_for_leader_epoch(
    replicas: ReplicaManager, body: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return end offsets of epochs, so that a client can detect log truncation."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end(replicas, topic.topic, requested) for requested in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _end(
    replicas: ReplicaManager, topic: str, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition, error = replicas.led(topic, requested.partition, requested.current_leader_epoch)
    if partition is None or error:
        return EpochEndOffset(partition=requested.partition, error_code=error)
    end = partition.log.end_of_epoch(requested.leader_epoch, partition.leader_epoch)
    return EpochEndOffset(
        partition=requested.partition, leader_epoch=end.epoch, end_offset=end.end_offset
    )
