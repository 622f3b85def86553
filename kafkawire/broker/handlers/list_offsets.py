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
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ...messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from ...messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
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
    broker: Broker, request: Request, body: ListOffsetsRequest, _connection: Connection, now: float
) -> ListOffsetsResponse | Outcome:
    """Look up each partition's offset."""
    times = Counter(
        (topic.name, each.partition_index) for topic in body.topics for each in topic.partitions
    )
    refused = {}
    for at, topic in enumerate(body.topics):
        for position, each in enumerate(topic.partitions):
            index = each.partition_index
            error = lookup_error(each, request.version, times[topic.name, index])
            if error is not None:
                refused[at, position] = offset_failed(index, error)
    old_style = request.version <= OLD_STYLE_TO
    return broker.machines.respond(
        request,
        lambda replicas, _token: (
            replicas.offsets.list_old_style(body)
            if old_style
            else replicas.offsets.list_offsets(body)
        ),
        OffsetsPlan(request.version, refused),
        now,
    )


@dataclass(slots=True)
class OffsetsPlan:
    """A ListOffsets. refused: (position of a topic, of its partition) -> the response."""

    version: int
    refused: dict[tuple[int, int], ListOffsetsPartitionResponse]

    def response(self, body: ListOffsetsResponse, _now: float) -> ListOffsetsResponse:
        """Replace the responses of partitions that were requested in a wrong way."""
        if self.version < EPOCH_FROM:
            for each in chain.from_iterable(topic.partitions for topic in body.topics):
                each.leader_epoch = NO_EPOCH
        for (topic, partition), response in self.refused.items():
            body.topics[topic].partitions[partition] = response
        return body


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


def offset_failed(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    """Return the response of a partition with an error."""
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
