"""Consumer groups of the protocol of KIP-848."""

from __future__ import annotations

from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from ...messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from ...messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ...messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ...messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import (
    CONSUMER_GROUPS_OFF,
    Behaviour,
    Feature,
    NotOffered,
    expect,
    expect_error,
    expect_that,
)
from ..connection import Connection
from ..session import Session, Topic
from .committed_offsets import commit, committed

LEAVE: Final = -1
REBALANCE_MS: Final = 30_000
MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
"""A member id, as members choose it: the text of a UUID."""
OTHER_MEMBER: Final = "BBBBBBBBBBBBBBBBBBBBBQ"
MEMBER_EPOCHS: Final = 9
"""OffsetCommit 9 has member epochs."""

AnyHeartbeatResponse = ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse


async def heartbeat(
    to: Connection, group: str, epoch: int, version: int, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    """Send a heartbeat of a member."""
    values = {"member_id": MEMBER} | fields
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_epoch=epoch, **values)
    response = await to.send(request, version, ConsumerGroupHeartbeatResponse)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise NotOffered(CONSUMER_GROUPS_OFF)
    return response


async def _member(
    s: Session, group: str, topic: Topic, version: int
) -> tuple[Connection, ConsumerGroupHeartbeatResponse]:
    to = await s.coordinator(group)

    async def attempt() -> tuple[int, ConsumerGroupHeartbeatResponse]:
        response = await heartbeat(
            to,
            group,
            0,
            version,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[topic.name],
            topic_partitions=[],
        )
        return response.error_code, response

    return to, await s.settled(attempt, "first heartbeat")


async def _joins(s: Session, version: int) -> None:
    topic, group = await s.topic(partitions=2), s.group()
    to, response = await _member(s, group, topic, version)
    expect(response.member_id, MEMBER, "member id")
    expect_that(response.member_epoch > 0, f"member epoch {response.member_epoch}")
    expect_that(response.heartbeat_interval_ms > 0, "no heartbeat interval")

    async def attempt() -> tuple[int, ConsumerGroupHeartbeatResponse]:
        nonlocal response
        if not _assigned(response):
            response = await heartbeat(to, group, response.member_epoch, version)
        pending = not _assigned(response) and not response.error_code
        return ErrorCode.LEADER_NOT_AVAILABLE if pending else response.error_code, response

    settled = await s.settled(attempt, "assignment")
    assert settled.assignment is not None
    assigned = only(settled.assignment.topic_partitions, group)
    expect((assigned.topic_id, sorted(assigned.partitions)), (topic.id, [0, 1]), "assignment")
    await _leave(to, group, version)


def _assigned(response: ConsumerGroupHeartbeatResponse) -> bool:
    return response.assignment is not None and bool(response.assignment.topic_partitions)


async def _leave(to: Connection, group: str, version: int) -> None:
    expect_left(await heartbeat(to, group, LEAVE, version))


def expect_left(response: AnyHeartbeatResponse) -> None:
    """Raise Deviation unless a member has left."""
    expect((response.error_code, response.member_epoch), (0, LEAVE), "error and epoch of leaving")


async def _fences(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    to, response = await _member(s, group, topic, version)
    stale = await heartbeat(to, group, response.member_epoch + 5, version)
    unknown = await heartbeat(to, group, 1, version, member_id=OTHER_MEMBER)
    expect_fenced(stale, unknown)
    await _leave(to, group, version)


def expect_fenced(stale: AnyHeartbeatResponse, unknown: AnyHeartbeatResponse) -> None:
    """Raise Deviation unless another epoch of a member and another member are refused."""
    expect_error(
        stale.error_code, ErrorCode.FENCED_MEMBER_EPOCH, "an epoch that is not the member's"
    )
    expect_error(unknown.error_code, ErrorCode.UNKNOWN_MEMBER_ID, "another member")


async def _refuses_unknown_assignor(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    to = await s.coordinator(group)

    response = await heartbeat(
        to,
        group,
        0,
        version,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=[topic.name],
        topic_partitions=[],
        server_assignor="kafkawire-no-such-assignor",
    )
    expect_error(response.error_code, ErrorCode.UNSUPPORTED_ASSIGNOR, "error code")


async def _refuses_invalid(s: Session, version: int) -> None:
    group = s.group()
    to = await s.coordinator(group)
    response = await heartbeat(to, group, 0, version)  # without what a new member says
    expect_error(response.error_code, ErrorCode.INVALID_REQUEST, "error code")


async def _describes(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    heartbeats = s.newest(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    to, response = await _member(s, group, topic, heartbeats)
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    answer = await to.send(request, version, ConsumerGroupDescribeResponse)
    described = only(answer.groups, group)
    member = only(described.members, group)
    expect(described.error_code, 0, "error code")
    expect((member.member_id, member.subscribed_topic_names), (MEMBER, [topic.name]), "member")
    expect(described.group_epoch, response.member_epoch, "group epoch")
    await _leave(to, group, heartbeats)


async def _checks_member_epochs(s: Session, version: int) -> None:
    topic, group = await s.topic(), s.group()
    heartbeats = s.newest(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    to, response = await _member(s, group, topic, heartbeats)
    epoch = response.member_epoch
    for each, expected in (
        (epoch, ErrorCode.NONE),
        (epoch + 1, ErrorCode.STALE_MEMBER_EPOCH),
    ):
        request = commit(
            group, topic, 3, version, member_id=MEMBER, generation_id_or_member_epoch=each
        )
        expect_error(await committed(to, request, version), expected, f"epoch {each - epoch:+}")
    await _leave(to, group, heartbeats)


G, A = Feature.CONSUMER_GROUPS, ApiKey
BEHAVIOURS: Final = (
    Behaviour(G, A.CONSUMER_GROUP_HEARTBEAT, "assigns the partitions to the only member", _joins),
    Behaviour(
        G, A.CONSUMER_GROUP_HEARTBEAT, "fences other epochs, and refuses other members", _fences
    ),
    Behaviour(
        G,
        A.CONSUMER_GROUP_HEARTBEAT,
        "refuses an assignor that it does not have",
        _refuses_unknown_assignor,
    ),
    Behaviour(
        G,
        A.CONSUMER_GROUP_HEARTBEAT,
        "refuses a new member without a subscription",
        _refuses_invalid,
    ),
    Behaviour(
        G,
        A.CONSUMER_GROUP_DESCRIBE,
        "describes a group with its members",
        _describes,
        needs={A.CONSUMER_GROUP_HEARTBEAT: 0},
    ),
    Behaviour(
        G,
        A.OFFSET_COMMIT,
        "accepts commits of members in their epoch",
        _checks_member_epochs,
        MEMBER_EPOCHS,
        needs={A.CONSUMER_GROUP_HEARTBEAT: 0},
    ),
)
