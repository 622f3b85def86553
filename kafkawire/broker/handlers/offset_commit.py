"""OffsetCommit: commits the offsets of a group.

v0   the first
v1   request +generation_id_or_member_epoch +member_id +commit_timestamp
v2   request +retention_time_ms -commit_timestamp
v3   response +throttle_time_ms
v4   no new fields │ throttled after the response
v5   request -retention_time_ms
v6   request +committed_leader_epoch
v7   request +group_instance_id
v8   flexible
v9   no new fields │ errors of the new protocol (KIP-848)
v10  request +topic_id -name; response +topic_id -name
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final

from ...messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ...messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.checks import CommittingMember
from ..groups.coordinator import Coordinator
from ..groups.group_types import member_error, stale_partitions
from ..groups.offsets import NEVER, Committed, TopicPartition, offset_record
from ..network.connection import Connection
from ..request import Request, Work

E = ErrorCode
GENERATION_FROM: Final = 1
TIMESTAMP_ONLY: Final = 1
RETENTION: Final = range(2, 5)
TOPIC_IDS_FROM: Final = 10
DEFAULT: Final = -1
LATEST_MS: Final = (1 << 63) - 1
OF_EPOCHS: Final = frozenset({E.STALE_MEMBER_EPOCH, E.ILLEGAL_GENERATION})
"""The errors of a member with another epoch than its own."""


def handle(
    broker: Broker, request: Request, body: OffsetCommitRequest, _connection: Connection, now: float
) -> OffsetCommitResponse | Work[OffsetCommitResponse]:
    """Commit offsets of a member, or of any client if the group has no members."""
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    return _response(broker, request, body, now)


def _response(
    broker: Broker, request: Request, body: OffsetCommitRequest, now: float
) -> Work[OffsetCommitResponse]:
    """Prepare the records in time slices, then append them at once if the member may commit."""
    version = request.version
    offsets: dict[TopicPartition, Committed] = {}
    responses: dict[TopicPartition, OffsetCommitResponsePartition] = {}
    topics = []
    for topic in body.topics:
        response = yield from _take(broker, topic, body, version, offsets, now)
        topics.append(response)
        responses.update(_by_partition(broker, response))
    records = {}
    for partition, committed in offsets.items():
        records[partition] = offset_record(body.group_id, partition, committed)
        yield 1
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    epoch = body.generation_id_or_member_epoch if version >= GENERATION_FROM else DEFAULT
    member = CommittingMember(body.group_id, body.member_id, epoch, body.group_instance_id)
    error = member_error(coordinator, member, version, now)
    if error in OF_EPOCHS:
        stale = _stale(broker, coordinator, member, offsets)
        if len(stale) == len(offsets):
            return error_response(body, error)
        for each in stale:
            responses[each].error_code = error
            del offsets[each], records[each]
    elif error:
        return error_response(body, error)
    if not (
        coordinator.may_create(body.group_id) and coordinator.may_commit(body.group_id, offsets)
    ):
        return error_response(body, E.POLICY_VIOLATION)
    coordinator.commit(body.group_id, offsets, now, records.values())
    return broker.groups.settle(request, OffsetCommitResponse(topics=topics), (coordinator,), now)


def _by_partition(
    broker: Broker, response: OffsetCommitResponseTopic
) -> dict[TopicPartition, OffsetCommitResponsePartition]:
    topic = None if response.name else broker.topics.by_id(response.topic_id)
    name = response.name if topic is None else topic.name
    return {(name, each.partition_index): each for each in response.partitions}


def _stale(
    broker: Broker,
    coordinator: Coordinator,
    member: CommittingMember,
    partitions: Iterable[TopicPartition],
) -> list[TopicPartition]:
    """Return the partitions that a member with another epoch than its own may not commit."""
    ids = {}
    for name, index in partitions:
        topic = broker.topics.get(name)
        if topic is not None:
            ids[topic.topic_id, index] = name, index
    return [ids[each] for each in stale_partitions(coordinator, member, ids)]


def _take(
    broker: Broker,
    topic: OffsetCommitRequestTopic,
    body: OffsetCommitRequest,
    version: int,
    committed: dict[TopicPartition, Committed],
    now: float,
) -> Generator[int, None, OffsetCommitResponseTopic]:
    topics = broker.topics
    by_id = version >= TOPIC_IDS_FROM
    metadata = topics.by_id(topic.topic_id) if by_id else topics.get(topic.name)
    unknown = E.UNKNOWN_TOPIC_ID if by_id else E.UNKNOWN_TOPIC_OR_PARTITION
    longest = broker.settings.number("offset.metadata.max.bytes")
    responses = []
    for each in topic.partitions:
        yield 1
        error = E.NONE
        if metadata is None:
            error = unknown
        elif metadata.partition(each.partition_index) is None:
            error = E.UNKNOWN_TOPIC_OR_PARTITION
        elif len((each.committed_metadata or "").encode()) > longest:
            error = E.OFFSET_METADATA_TOO_LARGE
        else:
            committed[metadata.name, each.partition_index] = _committed(
                each, body, version, broker.context.wall_ms(now)
            )
        responses.append(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
        )
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=responses)


def _committed(
    each: OffsetCommitRequestPartition, body: OffsetCommitRequest, version: int, wall_ms: int
) -> Committed:
    committed_ms = wall_ms
    if version == TIMESTAMP_ONLY and each.commit_timestamp != DEFAULT:
        committed_ms = each.commit_timestamp
    expires = NEVER
    if version in RETENTION and body.retention_time_ms != DEFAULT:
        expires = min(committed_ms + body.retention_time_ms, LATEST_MS)
    return Committed(
        each.committed_offset,
        each.committed_leader_epoch,
        each.committed_metadata or "",
        committed_ms,
        expires,
    )


def error_response(body: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return a response with the error for each partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
