"""OffsetForLeaderEpoch: returns the end offsets of leader epochs (KIP-101, KIP-320).

v0   the first
v1   response +leader_epoch
v2   request +current_leader_epoch; response +throttle_time_ms
v3   request +replica_id
v4   flexible
"""

from __future__ import annotations

from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ...messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..forwarding import AsItIs
from ..network.connection import Connection
from ..request import Outcome, Request


def handle(
    broker: Broker,
    request: Request,
    body: OffsetForLeaderEpochRequest,
    _connection: Connection,
    now: float,
) -> OffsetForLeaderEpochResponse | Outcome:
    """Return end offsets of epochs, so that a client can detect log truncation."""
    return broker.machines.respond(
        request,
        lambda replicas, _token: replicas.offsets.for_leader_epoch(body),
        AsItIs[OffsetForLeaderEpochResponse](),
        now,
    )


def error_response(
    body: OffsetForLeaderEpochRequest, error: ErrorCode
) -> OffsetForLeaderEpochResponse:
    """Return a response with the error for each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=each.partition, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
