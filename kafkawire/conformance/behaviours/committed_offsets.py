"""Offsets that groups commit."""

from __future__ import annotations

from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeleteGroupsResponse
from ...messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ...messages.offset_commit_response import OffsetCommitResponse
from ...messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ...messages.offset_delete_response import OffsetDeleteResponse
from ...messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import (
    NEWEST,
    Behaviour,
    Feature,
    expect,
    expect_error,
    expect_success,
)
from ..connection import Connection
from ..session import Session, Topic
from .groups import MEMBERS, Member, left, stable

SEVERAL_GROUPS: Final = 8
"""OffsetFetch 8 has several groups (KIP-709)."""
BY_ID: Final = 10
"""OffsetCommit and OffsetFetch 10 have topic ids (KIP-848)."""
METADATA: Final = "committed by a test"


def commit(
    group: str, topic: Topic, offset: int, version: int, *, partition: int = 0, **fields: Any
) -> OffsetCommitRequest:
    """Make a commit of one partition."""
    named = version < BY_ID
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name if named else "",
                topic_id=bytes(16) if named else topic.id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=METADATA,
                    )
                ],
            )
        ],
        **fields,
    )


async def committed(to: Connection, request: OffsetCommitRequest, version: int) -> int:
    """Commit; return the error code of the partition."""
    response = await to.send(request, version, OffsetCommitResponse)
    return only(only(response.topics, "OffsetCommit").partitions, "OffsetCommit").error_code


async def offset_of(
    to: Connection, group: str, topic: Topic, version: int
) -> OffsetFetchResponsePartition | OffsetFetchResponsePartitions:
    """Fetch the offset that a group committed for partition 0."""
    if version < SEVERAL_GROUPS:
        wanted = OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=group, topics=[wanted])
        response = await to.send(request, version, OffsetFetchResponse)
        expect_success(response.error_code, "OffsetFetch")
        return only(only(response.topics, group).partitions, group)
    named = version < BY_ID
    by_topic = OffsetFetchRequestTopics(
        name=topic.name if named else "",
        topic_id=bytes(16) if named else topic.id,
        partition_indexes=[0],
    )
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[by_topic])]
    )
    answer = only((await to.send(request, version, OffsetFetchResponse)).groups, group)
    expect_success(answer.error_code, "OffsetFetch")
    return only(only(answer.topics, group).partitions, group)


async def _commits(s: Session, version: int) -> None:
    topic = await s.topic()
    group = s.group()
    to = await s.coordinator(group)

    async def attempt() -> tuple[int, None]:
        return await committed(to, commit(group, topic, 42, version), version), None

    await s.settled(attempt, "error code")
    kept = await offset_of(to, group, topic, s.newest(ApiKey.OFFSET_FETCH, 9))
    expect((kept.committed_offset, kept.metadata), (42, METADATA), "offset and metadata")


async def _commit_as(s: Session, member: Member, topic: Topic) -> None:
    """Commit an offset of a member."""
    version = s.newest(ApiKey.OFFSET_COMMIT, 9)
    request = commit(
        member.group,
        topic,
        7,
        version,
        member_id=member.id,
        generation_id_or_member_epoch=member.generation,
    )
    expect_success(await committed(member.coordinator, request, version), "OffsetCommit")


async def _commits_as_member(s: Session, version: int) -> None:
    topic = await s.topic()
    member = await stable(s)
    for id_, generation, expected in (
        (member.id, member.generation, ErrorCode.NONE),
        (member.id, member.generation + 1, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", member.generation, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        request = commit(
            member.group,
            topic,
            7,
            version,
            member_id=id_,
            generation_id_or_member_epoch=generation,
        )
        code = await committed(member.coordinator, request, version)
        expect_error(code, expected, f"member {id_!r}, generation {generation}")
    await left(s, member)


async def _commits_no_partition(s: Session, version: int) -> None:
    topic = await s.topic()
    group = s.group()
    to = await s.coordinator(group)
    code = await committed(to, commit(group, topic, 1, version, partition=99), version)
    expect_error(code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "error code")


async def _fetches_offsets(s: Session, version: int) -> None:
    topic = await s.topic()
    group = s.group()
    to = await s.coordinator(group)
    none = await offset_of(to, group, topic, version)
    expect((none.error_code, none.committed_offset), (0, -1), "error and offset before a commit")
    newest = s.newest(ApiKey.OFFSET_COMMIT, 9)

    async def attempt() -> tuple[int, None]:
        return await committed(to, commit(group, topic, 5, newest), newest), None

    await s.settled(attempt, "OffsetCommit")
    kept = await offset_of(to, group, topic, version)
    expect((kept.committed_offset, kept.metadata), (5, METADATA), "offset and metadata")


async def _deletes_offsets(s: Session, version: int) -> None:
    topic = await s.topic()
    group = s.group()
    to = await s.coordinator(group)
    newest = s.newest(ApiKey.OFFSET_COMMIT, 9)

    async def attempt() -> tuple[int, None]:
        return await committed(to, commit(group, topic, 5, newest), newest), None

    await s.settled(attempt, "OffsetCommit")
    wanted = OffsetDeleteRequestTopic(
        name=topic.name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    request = OffsetDeleteRequest(group_id=group, topics=[wanted])
    response = await to.send(request, version, OffsetDeleteResponse)
    expect_success(response.error_code, "error code")
    kept = await offset_of(to, group, topic, s.newest(ApiKey.OFFSET_FETCH, 9))
    expect(kept.committed_offset, -1, "offset afterwards")


async def _deletes_groups(s: Session, version: int) -> None:
    # brokers before Kafka 4.0 forget empty groups without offsets when any topic is deleted
    topic, member = await s.topic(), await stable(s)
    await _commit_as(s, member, topic)
    for expected in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        request = DeleteGroupsRequest(groups_names=[member.group])
        response = await member.coordinator.send(request, version, DeleteGroupsResponse)
        code = only(response.results, member.group).error_code
        expect_error(code, expected, "error code")
        if expected is ErrorCode.NON_EMPTY_GROUP:
            await left(s, member)


G, A = Feature.GROUPS, ApiKey
OFFSETS: Final = {A.OFFSET_COMMIT: 2, A.OFFSET_FETCH: 1}
BEHAVIOURS: Final = (
    Behaviour(G, A.OFFSET_COMMIT, "keeps offsets", _commits, 2, NEWEST, OFFSETS),
    Behaviour(
        G,
        A.OFFSET_COMMIT,
        "accepts commits of its members in their generation",
        _commits_as_member,
        2,
        NEWEST,
        MEMBERS,
    ),
    Behaviour(
        G, A.OFFSET_COMMIT, "refuses a partition that does not exist", _commits_no_partition, 2
    ),
    Behaviour(
        G,
        A.OFFSET_FETCH,
        "returns committed offsets, and -1 where there is none",
        _fetches_offsets,
        1,
        NEWEST,
        OFFSETS,
    ),
    Behaviour(G, A.OFFSET_DELETE, "deletes offsets", _deletes_offsets, 0, NEWEST, OFFSETS),
    Behaviour(
        G,
        A.DELETE_GROUPS,
        "deletes groups without members, once",
        _deletes_groups,
        needs={**MEMBERS, A.OFFSET_COMMIT: 2},
    ),
)
