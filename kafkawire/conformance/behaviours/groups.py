"""Groups of the classic protocol: their members."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ...messages.api_key import ApiKey
from ...messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ...messages.heartbeat_request import HeartbeatRequest
from ...messages.heartbeat_response import HeartbeatResponse
from ...messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from ...messages.join_group_response import JoinGroupResponse
from ...messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from ...messages.leave_group_response import LeaveGroupResponse
from ...messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from ...messages.sync_group_response import SyncGroupResponse
from ...protocol.error_code import ErrorCode
from ...protocol.versioned import encode_versioned
from ..behaviour import (
    Behaviour,
    Feature,
    expect,
    expect_error,
    expect_success,
    expect_that,
)
from ..connection import Connection
from ..session import Session

PROTOCOL_TYPE: Final = "consumer"
PROTOCOL: Final = "range"
ASSIGNMENT: Final = b"assignment"
SUBSCRIPTION: Final = encode_versioned(ConsumerProtocolSubscription(), 0)
"""Valid: coordinators of 3.9 never respond to a consumer whose subscription is not."""
SESSION_MS: Final = 30_000
NEEDS_ID: Final = 4
"""From JoinGroup 4 on, a new member gets an id and joins again (KIP-394)."""


class Member(NamedTuple):
    """A member of a group, in a generation."""

    coordinator: Connection
    group: str
    id: str
    generation: int


async def join_once(
    to: Connection, group: str, version: int, member_id: str = "", **fields: Any
) -> JoinGroupResponse:
    """Join a group."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS if version >= 1 else -1,
        member_id=member_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=SUBSCRIPTION)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return await to.send(request, version, JoinGroupResponse)


async def joined(s: Session, version: int, **fields: Any) -> Member:
    """Join a new group as its only member."""
    group = s.group()
    to = await s.coordinator(group)

    async def attempt() -> tuple[int, JoinGroupResponse]:
        response = await join_once(to, group, version, **fields)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            response = await join_once(to, group, version, response.member_id, **fields)
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                # Kafka before 4.0 removes groups of new members when any topic is deleted
                return ErrorCode.COORDINATOR_NOT_AVAILABLE, response
        return response.error_code, response

    response = await s.settled(attempt, "JoinGroup")
    expect(response.leader, response.member_id, "leader of a group with one member")
    return Member(to, group, response.member_id, response.generation_id)


async def stable(s: Session, version: int | None = None) -> Member:
    """Join a new group, and assign."""
    member = await joined(s, s.newest(ApiKey.JOIN_GROUP, 9))
    version = s.newest(ApiKey.SYNC_GROUP, 5) if version is None else version
    response = await synced(member, version)
    expect_success(response.error_code, "SyncGroup")
    expect(response.assignment, ASSIGNMENT, "assignment")
    return member


async def synced(member: Member, version: int, **fields: Any) -> SyncGroupResponse:
    """Send the assignment of the leader."""
    request = SyncGroupRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.id,
        assignments=[SyncGroupRequestAssignment(member_id=member.id, assignment=ASSIGNMENT)],
    )
    if version >= 5:
        request.protocol_type, request.protocol_name = PROTOCOL_TYPE, PROTOCOL
    for name, value in fields.items():
        setattr(request, name, value)
    return await member.coordinator.send(request, version, SyncGroupResponse)


async def leave(member: Member, version: int) -> int:
    """Leave a group; return the error code."""
    request = LeaveGroupRequest(group_id=member.group)
    if version >= 3:
        request.members = [MemberIdentity(member_id=member.id)]
    else:
        request.member_id = member.id
    response = await member.coordinator.send(request, version, LeaveGroupResponse)
    return response.error_code or next((each.error_code for each in response.members), 0)


async def left(s: Session, member: Member) -> None:
    """Leave a group at the end of a check."""
    expect_success(await leave(member, s.newest(ApiKey.LEAVE_GROUP, 5)), "LeaveGroup")


async def _joins(s: Session, version: int) -> None:
    member = await joined(s, version)
    expect(member.generation, 1, "generation")
    await left(s, member)


async def _gives_id_first(s: Session, version: int) -> None:
    group = s.group()
    to = await s.coordinator(group)

    async def attempt() -> tuple[int, JoinGroupResponse]:
        response = await join_once(to, group, version)
        required = response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return 0 if required else response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR, response

    response = await s.settled(attempt, "JoinGroup without an id (MEMBER_ID_REQUIRED expected)")
    expect_that(bool(response.member_id), "the response has no member id")


async def _refuses_unknown_member(s: Session, version: int) -> None:
    member = await stable(s)
    response = await join_once(member.coordinator, member.group, version, "nobody")
    expect_error(response.error_code, ErrorCode.UNKNOWN_MEMBER_ID, "error code")
    await left(s, member)


async def _refuses_other_protocol(s: Session, version: int) -> None:
    member = await stable(s)
    other = [JoinGroupRequestProtocol(name="other", metadata=b"")]
    response = await join_once(member.coordinator, member.group, version, protocols=other)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        response = await join_once(
            member.coordinator, member.group, version, response.member_id, protocols=other
        )
    expect_error(response.error_code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "error code")
    await left(s, member)


async def _refuses_session_timeout(s: Session, version: int) -> None:
    group = s.group()
    to = await s.coordinator(group)
    response = await join_once(to, group, version, session_timeout_ms=1)
    expect_error(response.error_code, ErrorCode.INVALID_SESSION_TIMEOUT, "error code")


async def _assigns(s: Session, version: int) -> None:
    await left(s, await stable(s, version))


async def _refuses_sync_of_generation(s: Session, version: int) -> None:
    member = await stable(s)
    response = await synced(member, version, generation_id=member.generation + 1)
    expect_error(response.error_code, ErrorCode.ILLEGAL_GENERATION, "error code")
    await left(s, member)


async def _beats(s: Session, version: int) -> None:
    member = await stable(s)
    for id_, generation, expected in (
        (member.id, member.generation, ErrorCode.NONE),
        (member.id, member.generation + 1, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", member.generation, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        request = HeartbeatRequest(group_id=member.group, generation_id=generation, member_id=id_)
        response = await member.coordinator.send(request, version, HeartbeatResponse)
        expect_error(response.error_code, expected, f"member {id_!r}, generation {generation}")
    await left(s, member)


async def _leaves(s: Session, version: int) -> None:
    member = await stable(s)
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        expect_error(await leave(member, version), expected, "error code")


G, A = Feature.GROUPS, ApiKey
MEMBERS: Final = {A.JOIN_GROUP: 0, A.SYNC_GROUP: 0, A.LEAVE_GROUP: 0}
BEHAVIOURS: Final = (
    Behaviour(G, A.JOIN_GROUP, "makes the first member the leader", _joins, needs=MEMBERS),
    Behaviour(
        G, A.JOIN_GROUP, "gives a new member an id before it joins", _gives_id_first, NEEDS_ID
    ),
    Behaviour(
        G,
        A.JOIN_GROUP,
        "refuses a member that it does not have",
        _refuses_unknown_member,
        needs=MEMBERS,
    ),
    Behaviour(
        G,
        A.JOIN_GROUP,
        "refuses a member without a protocol of the group",
        _refuses_other_protocol,
        needs=MEMBERS,
    ),
    Behaviour(G, A.JOIN_GROUP, "refuses a session timeout of 1 ms", _refuses_session_timeout),
    Behaviour(
        G, A.SYNC_GROUP, "gives the members the assignment of the leader", _assigns, needs=MEMBERS
    ),
    Behaviour(
        G, A.SYNC_GROUP, "refuses another generation", _refuses_sync_of_generation, needs=MEMBERS
    ),
    Behaviour(
        G,
        A.HEARTBEAT,
        "accepts heartbeats of its members in their generation",
        _beats,
        needs=MEMBERS,
    ),
    Behaviour(G, A.LEAVE_GROUP, "lets members leave, once", _leaves, needs=MEMBERS),
)
