"""Streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.streams_group_describe_request import StreamsGroupDescribeRequest
from ...messages.streams_group_describe_response import StreamsGroupDescribeResponse
from ...messages.streams_group_describe_response import Topology as DescribedTopology
from ...messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from ...messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import Behaviour, Feature, NotOffered, expect, expect_error, expect_that
from ..connection import Connection
from ..session import Session
from .consumer_groups import (
    LEAVE,
    MEMBER,
    OTHER_MEMBER,
    REBALANCE_MS,
    expect_fenced,
    expect_left,
)

SUBTOPOLOGY: Final = "0"
PROCESS: Final = "kafkawire"
MISSING_SOURCE_TOPICS: Final = 1
"""The code of a status (KIP-1071)."""


async def heartbeat(
    to: Connection, group: str, epoch: int, version: int, **fields: Any
) -> StreamsGroupHeartbeatResponse:
    """Send a heartbeat of a member."""
    values = {"member_id": MEMBER} | fields
    request = StreamsGroupHeartbeatRequest(group_id=group, member_epoch=epoch, **values)
    response = await to.send(request, version, StreamsGroupHeartbeatResponse)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise NotOffered("Streams groups are switched off (streams.version)")
    return response


async def _member(
    s: Session, group: str, source: str, version: int
) -> tuple[Connection, StreamsGroupHeartbeatResponse]:
    """Let a member join whose topology reads one topic."""
    to = await s.coordinator(group)
    subtopologies = [Subtopology(subtopology_id=SUBTOPOLOGY, source_topics=[source])]

    async def attempt() -> tuple[int, StreamsGroupHeartbeatResponse]:
        response = await heartbeat(
            to,
            group,
            0,
            version,
            rebalance_timeout_ms=REBALANCE_MS,
            topology=Topology(epoch=0, subtopologies=subtopologies),
            process_id=PROCESS,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        return response.error_code, response

    return to, await s.settled(attempt, "first heartbeat")


async def _assigns(s: Session, version: int) -> None:
    topic, group = await s.topic(partitions=2), s.group()
    to, response = await _member(s, group, topic.name, version)
    expect(response.member_id, MEMBER, "member id")
    expect_that(response.member_epoch > 0, f"member epoch {response.member_epoch}")
    expect_that(response.heartbeat_interval_ms > 0, "no heartbeat interval")

    async def attempt() -> tuple[int, StreamsGroupHeartbeatResponse]:
        nonlocal response
        if not response.active_tasks:  # a new group waits for more members
            response = await heartbeat(to, group, response.member_epoch, version)
        pending = not response.active_tasks and not response.error_code
        return ErrorCode.LEADER_NOT_AVAILABLE if pending else response.error_code, response

    settled = await s.settled(attempt, "tasks")
    tasks = only(settled.active_tasks or [], group)
    expect((tasks.subtopology_id, sorted(tasks.partitions)), (SUBTOPOLOGY, [0, 1]), "active tasks")
    await _leave(to, group, version)


async def _leave(to: Connection, group: str, version: int) -> None:
    expect_left(await heartbeat(to, group, LEAVE, version))


async def _fences(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    to, response = await _member(s, group, topic.name, version)
    stale = await heartbeat(to, group, response.member_epoch + 5, version)
    unknown = await heartbeat(to, group, 1, version, member_id=OTHER_MEMBER)
    expect_fenced(stale, unknown)
    await _leave(to, group, version)


async def _refuses_invalid(s: Session, version: int) -> None:
    group = s.group()
    to = await s.coordinator(group)
    response = await heartbeat(to, group, 0, version)  # without what a new member says
    expect_error(response.error_code, ErrorCode.INVALID_REQUEST, "error code")


async def _names_missing_topics(s: Session, version: int) -> None:
    group = s.group()
    missing = f"{group}-missing"
    to, response = await _member(s, group, missing, version)
    details = {each.status_code: each.status_detail for each in response.status or ()}
    expect_that(missing in details.get(MISSING_SOURCE_TOPICS, ""), f"status {details}")
    await _leave(to, group, version)


async def _describes(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    heartbeats = s.newest(ApiKey.STREAMS_GROUP_HEARTBEAT, 1)
    to, response = await _member(s, group, topic.name, heartbeats)
    request = StreamsGroupDescribeRequest(group_ids=[group])
    answer = await to.send(request, version, StreamsGroupDescribeResponse)
    described = only(answer.groups, group)
    member = only(described.members, group)
    expect(described.error_code, 0, "error code")
    expect((member.member_id, member.process_id), (MEMBER, PROCESS), "member")
    behind = described.group_epoch < response.member_epoch
    expect_that(not behind, f"group epoch {described.group_epoch}, member {response.member_epoch}")
    topology = described.topology or DescribedTopology()
    subtopology = only(topology.subtopologies or [], group)
    expect(subtopology.source_topics, [topic.name], "source topics")
    await _leave(to, group, heartbeats)


G, A = Feature.STREAMS_GROUPS, ApiKey
BEHAVIOURS: Final = (
    Behaviour(G, A.STREAMS_GROUP_HEARTBEAT, "assigns the tasks to the only member", _assigns),
    Behaviour(
        G, A.STREAMS_GROUP_HEARTBEAT, "fences members of other epochs, and other ids", _fences
    ),
    Behaviour(
        G, A.STREAMS_GROUP_HEARTBEAT, "refuses a new member without a topology", _refuses_invalid
    ),
    Behaviour(
        G, A.STREAMS_GROUP_HEARTBEAT, "names the missing source topics", _names_missing_topics
    ),
    Behaviour(
        G,
        A.STREAMS_GROUP_DESCRIBE,
        "describes a Streams group with its topology and members",
        _describes,
        needs={A.STREAMS_GROUP_HEARTBEAT: 0},
    ),
)
