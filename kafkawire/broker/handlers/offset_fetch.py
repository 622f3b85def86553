"""OffsetFetch: how far groups said they have read.

v0   the first
v1   no new fields │ from Kafka, no longer ZooKeeper
v2   response +error_code │ null topics are all
v3   response +throttle_time_ms
v4   no new fields │ throttled after the answer
v5   response +committed_leader_epoch
v6   flexible
v7   request +require_stable
v8   request +groups -group_id -topics; response +groups -topics -error_code │ several
      groups
v9   request +member_id +member_epoch
v10  request +topic_id -name; response +topic_id -name
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..connection import Connection
from ..groups.offsets import Committed
from ..request import Answer, Request

E = ErrorCode
NULL_IS_ALL_FROM: Final = 2
GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10
NOTHING: Final = Committed(-1, -1, "", -1)


class Wanted(NamedTuple):
    """Partitions of a topic whose offsets are wanted. name: None where no topic has the id."""

    name: str | None
    topic_id: bytes
    partitions: Iterable[int]


def handle(broker: Broker, request: Request, _connection: Connection, _now: float) -> Answer:
    """Give committed offsets, -1 where there is none; of a group that is named twice the last
    counts, or a few bytes would have all its offsets sent again.
    """
    body = request.body
    assert isinstance(body, OffsetFetchRequest)
    if request.version >= GROUPS_FROM:
        return OffsetFetchResponse(
            groups=[
                _group(broker, asked, request.version)
                for asked in {each.group_id: each for each in body.groups}.values()
            ]
        )
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return _refused_at(body, coordinator, request.version)
    kept = coordinator.offsets.get(body.group_id, {})
    wanted = [Wanted(each.name, b"", each.partition_indexes) for each in body.topics or []]
    if body.topics is None and request.version >= NULL_IS_ALL_FROM:
        wanted = _all(broker, kept)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=each.name or "",
                partitions=[
                    _old(index, kept.get((each.name or "", index), NOTHING))
                    for index in each.partitions
                ],
            )
            for each in wanted
        ]
    )


def _old(index: int, found: Committed) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _group(
    broker: Broker, asked: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponseGroup:
    coordinator = broker.coordinator(asked.group_id)
    if isinstance(coordinator, ErrorCode):
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=coordinator)
    kept = coordinator.offsets.get(asked.group_id, {})
    wanted = _all(broker, kept)
    if asked.topics is not None:
        wanted = [
            Wanted(
                _name(broker, each.topic_id) if version >= TOPIC_IDS_FROM else each.name,
                each.topic_id,
                each.partition_indexes,
            )
            for each in asked.topics
        ]
    topics = [
        OffsetFetchResponseTopics(
            name=each.name or "",
            topic_id=each.topic_id,
            partitions=[_new(each, index, kept) for index in each.partitions],
        )
        for each in wanted
    ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _new(
    wanted: Wanted, index: int, kept: dict[tuple[str, int], Committed]
) -> OffsetFetchResponsePartitions:
    found = NOTHING if wanted.name is None else kept.get((wanted.name, index), NOTHING)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        error_code=E.UNKNOWN_TOPIC_ID if wanted.name is None else E.NONE,
    )


def _name(broker: Broker, topic_id: bytes) -> str | None:
    topic = broker.cluster.topics.by_id(topic_id)
    return None if topic is None else topic.name


def _all(broker: Broker, kept: dict[tuple[str, int], Committed]) -> list[Wanted]:
    indexes: dict[str, list[int]] = {}
    for name, index in kept:
        indexes.setdefault(name, []).append(index)
    found = []
    for name, partitions in indexes.items():
        topic = broker.cluster.topics.get(name)
        if topic is not None:
            found.append(Wanted(name, topic.topic_id, partitions))
    return found


def _refused_at(body: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    response = refused(body, error)
    if version >= NULL_IS_ALL_FROM:
        response.topics = []
    return response


def refused(body: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    """Answer with an error: at the top and for each partition, or for each group."""
    if body.groups:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=each.group_id, error_code=error)
                for each in body.groups
            ]
        )
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in body.topics or []
        ],
    )
