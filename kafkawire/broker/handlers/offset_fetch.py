"""OffsetFetch: returns the committed offsets of groups.

v0   the first
v1   no new fields │ from Kafka, no longer ZooKeeper
v2   response +error_code │ null topics are all
v3   response +throttle_time_ms
v4   no new fields │ throttled after the response
v5   response +committed_leader_epoch
v6   flexible
v7   request +require_stable
v8   request +groups -group_id -topics; response +groups -topics -error_code │ several
      groups
v9   request +member_id +member_epoch
v10  request +topic_id -name; response +topic_id -name
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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
from ..groups.consumer_groups.checks import CommittingMember
from ..groups.coordinator import Coordinator
from ..groups.group_types import fetching_error
from ..groups.offsets import Committed
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode
NULL_IS_ALL_FROM: Final = 2
GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10
NOTHING: Final = Committed(-1, -1, "", -1)
Offsets = Mapping[tuple[str, int], Committed]


class RequestedTopic(NamedTuple):
    """Requested partitions of a topic. name: None for an unknown topic id."""

    name: str | None
    topic_id: bytes
    partitions: Iterable[int]


def handle(
    broker: Broker, request: Request, body: OffsetFetchRequest, _connection: Connection, now: float
) -> OffsetFetchResponse | Outcome:
    """Return committed offsets, -1 for none.

    Of duplicate groups only the last one counts, or a few bytes would have all offsets of a group
    sent again.
    """
    response = _response(broker, request, body)
    groups = [each.group_id for each in body.groups] or [body.group_id]
    settled = [
        coordinator
        for coordinator in map(broker.coordinator, groups)
        if not isinstance(coordinator, E)
    ]
    return broker.groups.settle(request, response, settled, now)


def _response(broker: Broker, request: Request, body: OffsetFetchRequest) -> OffsetFetchResponse:
    if request.version >= GROUPS_FROM:
        return OffsetFetchResponse(
            groups=[
                _group(broker, body, group, request.version)
                for group in {each.group_id: each for each in body.groups}.values()
            ]
        )
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return _group_error(body, coordinator, request.version)
    committed = coordinator.offsets.get(body.group_id, {})
    unstable = _unstable(coordinator, body, body.group_id)
    requested = [
        RequestedTopic(each.name, b"", each.partition_indexes) for each in body.topics or []
    ]
    if body.topics is None and request.version >= NULL_IS_ALL_FROM:
        requested = _all(broker, committed)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=each.name or "",
                partitions=[
                    _partition((each.name or "", index), committed, unstable)
                    for index in each.partitions
                ],
            )
            for each in requested
        ]
    )


def _unstable(
    coordinator: Coordinator, body: OffsetFetchRequest, group_id: str
) -> Container[tuple[str, int]]:
    """Return the partitions for which the client has to wait until a transaction ends."""
    return set(coordinator.pending_offsets.of(group_id)) if body.require_stable else ()


def _partition(
    of: tuple[str, int], committed: Offsets, unstable: Container[tuple[str, int]]
) -> OffsetFetchResponsePartition:
    is_stable = of not in unstable
    offset = committed.get(of, NOTHING) if is_stable else NOTHING
    return OffsetFetchResponsePartition(
        partition_index=of[1],
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=E.NONE if is_stable else E.UNSTABLE_OFFSET_COMMIT,
    )


def _group(
    broker: Broker, body: OffsetFetchRequest, group: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponseGroup:
    coordinator = broker.coordinator(group.group_id)
    if isinstance(coordinator, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=coordinator)
    if group.member_id is not None or group.member_epoch >= 0:
        member = CommittingMember(group.group_id, group.member_id or "", group.member_epoch)
        error = fetching_error(coordinator, member)
        if error:
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
    committed = coordinator.offsets.get(group.group_id, {})
    unstable = _unstable(coordinator, body, group.group_id)
    requested = _all(broker, committed)
    if group.topics is not None:
        requested = [
            RequestedTopic(
                _name(broker, each.topic_id) if version >= TOPIC_IDS_FROM else each.name,
                each.topic_id,
                each.partition_indexes,
            )
            for each in group.topics
        ]
    topics = [
        OffsetFetchResponseTopics(
            name=each.name or "",
            topic_id=each.topic_id,
            partitions=[
                _partition_of_topic(each, index, committed, unstable) for index in each.partitions
            ],
        )
        for each in requested
    ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _partition_of_topic(
    requested: RequestedTopic,
    index: int,
    committed: Offsets,
    unstable: Container[tuple[str, int]],
) -> OffsetFetchResponsePartitions:
    row = _partition((requested.name or "", index), committed, unstable)
    if requested.name is None:
        row = _partition(("", index), {}, ())
        row.error_code = E.UNKNOWN_TOPIC_ID
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=row.committed_offset,
        committed_leader_epoch=row.committed_leader_epoch,
        metadata=row.metadata,
        error_code=row.error_code,
    )


def _name(broker: Broker, topic_id: bytes) -> str | None:
    topic = broker.topics.by_id(topic_id)
    return None if topic is None else topic.name


def _all(broker: Broker, committed: dict[tuple[str, int], Committed]) -> list[RequestedTopic]:
    indexes: dict[str, list[int]] = {}
    for name, index in committed:
        indexes.setdefault(name, []).append(index)
    rows = []
    for name, partitions in indexes.items():
        topic = broker.topics.get(name)
        if topic is not None:
            rows.append(RequestedTopic(name, topic.topic_id, partitions))
    return rows


def _group_error(body: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    response = error_response(body, error)
    if version >= NULL_IS_ALL_FROM:
        response.topics = []
    return response


def error_response(body: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    """Return a response with the error: at the top and for each partition, or for each group."""
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
