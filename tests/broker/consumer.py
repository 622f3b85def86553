"""A client that may be a member of a group, and what groups and offsets look like to it."""

from __future__ import annotations

from collections.abc import Sequence

from kafkawire import ErrorCode
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.heartbeat_response import HeartbeatResponse
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
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse

from .harness import Client, Harness

E = ErrorCode
GROUP = "g"
SESSION, REBALANCE = 10.0, 60.0
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
Protocols = Sequence[tuple[str, bytes]]
RANGE: Protocols = [("range", b"r")]


class Consumer:
    """A client that may be a member of the group."""

    def __init__(self, harness: Harness, instance: str | None = None, node_id: int = 1) -> None:
        self.harness = harness
        self.client: Client = harness.client(node_id)
        self.instance = instance
        self.rebalance = REBALANCE
        self.member_id = ""
        self.generation_id = -1
        self.leads = False
        self.early_response: JoinGroupResponse | None = None

    def joins(self, protocols: Protocols = RANGE, version: int = 9, kind: str = "consumer") -> None:
        """Send JoinGroup, twice if a member id is required; the response may be delayed."""
        self._join(protocols, version, kind)
        if not self.client.is_waiting() and version >= 4 and not self.member_id:
            response = self.client.receive(JoinGroupResponse)
            if response.error_code == E.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                self._join(protocols, version, kind)
                return
            self._hears(response)

    def _join(self, protocols: Protocols, version: int, kind: str) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(SESSION * 1000),
            rebalance_timeout_ms=int(self.rebalance * 1000) if version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=kind,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        self.client.send(request, version)

    def is_in(self) -> JoinGroupResponse:
        """Take the response to JoinGroup, which says that the rebalance is over."""
        response = (
            self.client.receive(JoinGroupResponse)
            if self.early_response is None
            else self.early_response
        )
        self.early_response = None
        assert response.error_code == E.NONE, response
        self._hears(response)
        self.early_response = None
        return response

    def _hears(self, response: JoinGroupResponse) -> None:
        self.early_response = response
        self.member_id, self.generation_id = response.member_id, response.generation_id
        self.leads = response.leader == response.member_id

    def syncs(self, **assignments: bytes) -> None:
        """Send SyncGroup; the leader sends the assignments by member id."""
        self.client.send(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequestAssignment(member_id=name, assignment=data)
                    for name, data in assignments.items()
                ],
            ),
            5,
        )

    def assigned(self) -> bytes:
        """Take the response to SyncGroup."""
        response = self.client.receive(SyncGroupResponse)
        assert response.error_code == E.NONE, response
        return response.assignment

    def beats(self) -> ErrorCode:
        """Send a heartbeat."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return ErrorCode(self.client.exchange(request, 4, HeartbeatResponse).error_code)

    def disconnect(self) -> ErrorCode:
        """Send LeaveGroup."""
        one = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=GROUP, members=[one])
        response = self.client.exchange(request, 5, LeaveGroupResponse)
        return ErrorCode(response.error_code or response.members[0].error_code)

    def commits(self, offset: int, topic: str = "t", version: int = 8) -> ErrorCode:
        """Commit an offset of partition 0."""
        return commit(self.client, topic, offset, self.generation_id, self.member_id, version)


def commit_request(
    topic: str, offset: int, generation_id: int = -1, member_id: str = ""
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset, committed_metadata="m"
                    )
                ],
            )
        ],
    )


def commit(
    client: Client,
    topic: str,
    offset: int,
    generation_id: int = -1,
    member_id: str = "",
    version: int = 8,
) -> ErrorCode:
    request = commit_request(topic, offset, generation_id, member_id)
    return commit_error(client.exchange(request, version, OffsetCommitResponse))


def commit_error(response: OffsetCommitResponse) -> ErrorCode:
    return ErrorCode(response.topics[0].partitions[0].error_code)


def committed(client: Client, topic: str = "t") -> int:
    request = OffsetFetchRequest(
        group_id=GROUP, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    )
    response = client.exchange(request, 6, OffsetFetchResponse)
    assert response.error_code == E.NONE, response
    return response.topics[0].partitions[0].committed_offset


def described(client: Client) -> DescribedGroup:
    response = client.exchange(DescribeGroupsRequest(groups=[GROUP]), 5, DescribeGroupsResponse)
    return response.groups[0]


def coordinator(client: Client) -> int:
    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
    return client.exchange(request, 4, FindCoordinatorResponse).coordinators[0].node_id


def stable(*consumers: Consumer) -> None:
    """Let members join the group, one after the other, and assign."""
    for at, consumer in enumerate(consumers):
        consumer.joins()
        for earlier in consumers[:at]:
            earlier.joins()
        for each in consumers[: at + 1]:
            each.is_in()
    leader = next(consumer for consumer in consumers if consumer.leads)
    for consumer in consumers:
        if consumer is not leader:
            consumer.syncs()
    leader.syncs(**{consumer.member_id: consumer.member_id.encode() for consumer in consumers})
    for consumer in consumers:
        assert consumer.assigned() == consumer.member_id.encode()
