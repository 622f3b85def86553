"""Handles a DeleteRecords: deletes records before an offset.

Law: the log start offset moves up to the high watermark at most.
"""

from __future__ import annotations

from typing import Final

from ...messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from ...messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ...protocol import ErrorCode
from ..topics import INTERNAL
from .appending import Appender
from .replica_manager import ReplicaManager

E = ErrorCode
HIGH_WATERMARK: Final = -1
NOWHERE: Final = -1


def delete_records(
    replicas: ReplicaManager, appender: Appender, body: DeleteRecordsRequest, now: float
) -> DeleteRecordsResponse:
    """Move the log start offset of each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(replicas, appender, topic.name, each, now) for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _delete(
    replicas: ReplicaManager,
    appender: Appender,
    topic: str,
    requested: DeleteRecordsPartition,
    now: float,
) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL:
        return deletion_failed(requested.partition_index, E.INVALID_TOPIC_EXCEPTION)
    partition, error = replicas.led(topic, requested.partition_index)
    if partition is None or error:
        return deletion_failed(requested.partition_index, error)
    log = partition.log
    offset = log.high_watermark if requested.offset == HIGH_WATERMARK else requested.offset
    if not 0 <= offset <= log.high_watermark:
        return deletion_failed(requested.partition_index, E.OFFSET_OUT_OF_RANGE)
    appender.trim(partition, offset)
    appender.complete_fetches(partition, now)
    return DeleteRecordsPartitionResult(
        partition_index=requested.partition_index, low_watermark=log.log_start_offset
    )


def deletion_failed(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    """Return the response of a partition with an error."""
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NOWHERE, error_code=error
    )
