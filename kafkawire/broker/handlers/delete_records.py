"""DeleteRecords: deletes records before an offset (KIP-107).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from typing import Final

from ...messages.delete_records_request import DeleteRecordsRequest
from ...messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Outcome, Request

NO_OFFSET: Final = -1


def handle(
    broker: Broker,
    request: Request,
    body: DeleteRecordsRequest,
    _connection: Connection,
    now: float,
) -> DeleteRecordsResponse | Outcome:
    """Move the log start offset of each partition."""
    return broker.replicas.delete_records(request, body, now)


def error_response(body: DeleteRecordsRequest, error: ErrorCode) -> DeleteRecordsResponse:
    """Return a response with the error for each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    deletion_failed(each.partition_index, error) for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def deletion_failed(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    """Return the response of a partition with an error."""
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_OFFSET, error_code=error
    )
