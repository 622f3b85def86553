"""DeleteRecords: deletes records before an offset (KIP-107).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
"""

from __future__ import annotations

from dataclasses import dataclass
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
from ..topics import INTERNAL

NO_OFFSET: Final = -1


def handle(
    broker: Broker,
    request: Request,
    body: DeleteRecordsRequest,
    _connection: Connection,
    now: float,
) -> DeleteRecordsResponse | Outcome:
    """Move the log start offset of each partition, but not of internal topics."""
    refused = {}
    rest = []
    for position, topic in enumerate(body.topics):
        if topic.name not in INTERNAL:
            rest.append(topic)
            continue
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
        results = [deletion_failed(each.partition_index, error) for each in topic.partitions]
        refused[position] = DeleteRecordsTopicResult(name=topic.name, partitions=results)
    allowed = DeleteRecordsRequest(topics=rest, timeout_ms=body.timeout_ms)
    return broker.machines.respond(
        request,
        lambda replicas, token: replicas.deletions.delete_records(token, allowed, now),
        DeletionPlan(refused),
        now,
    )


@dataclass(slots=True)
class DeletionPlan:
    """A DeleteRecords. refused: position of a topic in the request -> its result."""

    refused: dict[int, DeleteRecordsTopicResult]

    def response(self, body: DeleteRecordsResponse, _now: float) -> DeleteRecordsResponse:
        """Put the refused topics where the request has them."""
        if self.refused:
            rest = iter(body.topics)
            count = len(self.refused) + len(body.topics)
            body.topics = [self.refused.get(number) or next(rest) for number in range(count)]
        return body


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
