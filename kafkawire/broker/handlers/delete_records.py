"""DeleteRecords: deletes records before an offset (KIP-107).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
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
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..topics import INTERNAL

E = ErrorCode
HIGH_WATERMARK: Final = -1
NOWHERE: Final = -1


def handle(
    broker: Broker,
    _request: Request,
    body: DeleteRecordsRequest,
    _connection: Connection,
    now: float,
) -> DeleteRecordsResponse:
    """Move the log start offset of each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(broker, topic.name, each, now) for each in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _delete(
    broker: Broker, topic: str, requested: DeleteRecordsPartition, now: float
) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL:
        return _failed(requested.partition_index, E.INVALID_TOPIC_EXCEPTION)
    partition, error = broker.replicas.led(topic, requested.partition_index)
    if partition is None or error:
        return _failed(requested.partition_index, error)
    log = partition.log
    offset = log.high_watermark if requested.offset == HIGH_WATERMARK else requested.offset
    if not 0 <= offset <= log.high_watermark:
        return _failed(requested.partition_index, E.OFFSET_OUT_OF_RANGE)
    broker.appender.trim(partition, offset)
    broker.appender.complete_fetches(partition, now)
    return DeleteRecordsPartitionResult(
        partition_index=requested.partition_index, low_watermark=log.log_start_offset
    )


def _failed(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NOWHERE, error_code=error
    )


def error_response(body: DeleteRecordsRequest, error: ErrorCode) -> DeleteRecordsResponse:
    """Return a response with the error for each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(each.partition_index, error) for each in topic.partitions],
            )
            for topic in body.topics
        ]
    )
