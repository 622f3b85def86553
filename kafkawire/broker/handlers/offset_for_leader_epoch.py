"""OffsetForLeaderEpoch: returns the end offsets of leader epochs (KIP-101, KIP-320).

v0   the first
v1   response +leader_epoch
v2   request +current_leader_epoch; response +throttle_time_ms
v3   request +replica_id
v4   flexible
"""

from __future__ import annotations

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
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request


def handle(
    broker: Broker,
    _request: Request,
    body: OffsetForLeaderEpochRequest,
    _connection: Connection,
    _now: float,
) -> OffsetForLeaderEpochResponse:
    """Return end offsets of epochs, so that a client can detect log truncation."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end(broker, topic.topic, requested) for requested in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _end(broker: Broker, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    partition, error = broker.replicas.led(
        topic, requested.partition, requested.current_leader_epoch
    )
    if partition is None or error:
        return EpochEndOffset(partition=requested.partition, error_code=error)
    end = partition.log.end_of_epoch(requested.leader_epoch, partition.leader_epoch)
    return EpochEndOffset(
        partition=requested.partition, leader_epoch=end.epoch, end_offset=end.end_offset
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
