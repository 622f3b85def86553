"""Helpers for group members: they join, commit and leave over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kafkawire import ErrorCode
from kafkawire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafkawire.messages.leave_group_response import LeaveGroupResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse
from kafkawire.protocol import encode_versioned

from .harness import Client, Harness

E = ErrorCode
SESSION_S = 1000.0
SUBSCRIBED = encode_versioned(ConsumerProtocolSubscription(topics=["t", "u"]), 0)
Committed = tuple[int, int, str | None]
"""An offset, its leader epoch, metadata."""
Offsets = dict[tuple[str, int], Committed]


def coordinator(harness: Harness, group: str) -> Client:
    """Connect to the broker that coordinates a group."""
    requested = FindCoordinatorRequest(coordinator_keys=[group])
    alive = min(harness.alive)
    response = harness.client(alive).exchange(requested, 4, FindCoordinatorResponse)
    return harness.client(response.coordinators[0].node_id)


def committed(harness: Harness, group: str) -> Offsets:
    """All that a group has committed."""
    requested = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    [found] = coordinator(harness, group).exchange(requested, 8, OffsetFetchResponse).groups
    assert found.error_code == E.NONE
    return {
        (topic.name, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
        )
        for topic in found.topics
        for each in topic.partitions
    }


@dataclass
class Members:
    """The member ids and the generation of a group."""

    ids: list[tuple[str, str | None]] = field(default_factory=list)
    generation_id: int = -1


def commit(
    client: Client,
    group: str,
    given: Offsets,
    members: Members = Members(),  # noqa: B008 (nobody)
    version: int = 8,
    retention_ms: int = -1,
) -> set[int]:
    """Commit as a member, or without one; return the errors."""
    member_id, instance = members.ids[-1] if members.ids else ("", None)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=members.generation_id if version >= 1 else -1,
        member_id=member_id if version >= 1 else "",
        group_instance_id=instance if version >= 7 else None,
        retention_time_ms=retention_ms if 2 <= version <= 4 else -1,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                ],
            )
            for (topic, partition), (offset, leader_epoch, metadata) in given.items()
        ],
    )
    response = client.exchange(request, version, OffsetCommitResponse)
    return {each.error_code for topic in response.topics for each in topic.partitions}


def come(harness: Harness, group: str, static: Sequence[bool]) -> Members:
    """Let members join an empty group; each is assigned its own id."""
    came = [
        (coordinator(harness, group), f"i{at}" if named else None)
        for at, named in enumerate(static)
    ]
    for client, instance in came:
        _join(client, group, instance)
    settings = harness.broker(min(harness.alive)).settings
    harness.advance(settings.seconds("group.initial.rebalance.delay.ms") * 2 + 0.1)
    responses = [client.receive(JoinGroupResponse) for client, _ in came]
    assert len({response.generation_id for response in responses}) == 1
    ids = [(response.member_id, each[1]) for response, each in zip(responses, came, strict=True)]
    members = Members(ids, responses[0].generation_id)
    leader = responses[0].leader
    clients = [client for client, _ in came]
    for client, (member_id, instance) in sorted(
        zip(clients, ids, strict=True), key=lambda each: each[1][0] == leader
    ):
        shares = ids if member_id == leader else []
        request = SyncGroupRequest(
            group_id=group,
            generation_id=members.generation_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=each.encode())
                for each, _ in shares
            ],
        )
        client.send(request, 5)
    for client in clients:
        assert client.receive(SyncGroupResponse).error_code == E.NONE
    return members


def _join(client: Client, group: str, instance: str | None) -> None:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=int(SESSION_S * 1000),
        rebalance_timeout_ms=60_000,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED)],
    )
    client.send(request, 9)
    if not client.is_waiting():
        request.member_id = client.receive(JoinGroupResponse).member_id
        client.send(request, 9)


def leave(harness: Harness, group: str, members: Members) -> None:
    """Let all members leave."""
    identities = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in members.ids]
    request = LeaveGroupRequest(group_id=group, members=identities)
    response = coordinator(harness, group).exchange(request, 5, LeaveGroupResponse)
    assert {each.error_code for each in response.members} == {E.NONE}
