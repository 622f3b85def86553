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

from ...messages.list_offsets_request import ListOffsetsRequest
from ...messages.list_offsets_response import ListOffsetsResponse, ListOffsetsTopicResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..replication.offsets import offset_failed
from ..request import Outcome, Request


def handle(
    broker: Broker, request: Request, body: ListOffsetsRequest, _connection: Connection, now: float
) -> ListOffsetsResponse | Outcome:
    """Look up each partition's offset."""
    return broker.replicas.list_offsets(request, body, now)


def error_response(body: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
    """Return a response with the error for each partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    offset_failed(each.partition_index, error) for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
