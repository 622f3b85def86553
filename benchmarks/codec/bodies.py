"""Makes the eight messages of the codec suite, sized like the traffic of a busy client.

FetchRequest v12          a consumer's poll of 50 partitions
ApiVersionsResponse v3    a broker with 60 APIs
MetadataResponse v9       20 topics of 12 partitions, replicated three times
JoinGroupResponse v7      a leader with 5 members
OffsetCommitRequest v8    50 partitions
ListOffsetsResponse v6    12 partitions
FindCoordinatorRequest v3 one group
HeartbeatRequest v4       one member
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kafkawire import Message
from kafkawire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kafkawire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

MEMBER: Final = "consumer-orders-1-4f6ad2c0-98f1-4f0e-a5c7-2d1f0f0c7a11"


class Body(NamedTuple):
    """A message and its version."""

    message: Message
    version: int

    @property
    def name(self) -> str:
        return type(self.message).__name__

    @property
    def data(self) -> bytes:
        return self.message.encode(self.version)


def fetch_request() -> FetchRequest:
    """A request for 50 partitions of a topic."""
    partitions = [
        FetchPartition(
            partition=index,
            current_leader_epoch=5,
            fetch_offset=1_000_000 + index,
            partition_max_bytes=1_048_576,
        )
        for index in range(50)
    ]
    topic = FetchTopic(topic="orders", partitions=partitions)
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, session_id=77, session_epoch=1, topics=[topic]
    )


def api_versions_response() -> ApiVersionsResponse:
    """The versions of 60 APIs."""
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=k, min_version=0, max_version=9) for k in range(60)]
    )


def metadata_response() -> MetadataResponse:
    """6 brokers and 20 topics of 12 partitions."""

    def partition(index: int) -> MetadataResponsePartition:
        replicas = [index % 6, (index + 1) % 6, (index + 2) % 6]
        return MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 6,
            leader_epoch=7,
            replica_nodes=replicas,
            isr_nodes=list(replicas),
        )

    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node, host=f"broker-{node}.example", port=9092, rack=f"rack-{node % 3}"
            )
            for node in range(6)
        ],
        cluster_id="pMTtbNY6S7iFuWiMYBrZ1g",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{number}", partitions=[partition(index) for index in range(12)]
            )
            for number in range(20)
        ],
    )


def join_group_response() -> JoinGroupResponse:
    """The leader's response in a group of 5 members."""
    return JoinGroupResponse(
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader=MEMBER,
        member_id=MEMBER,
        members=[
            JoinGroupResponseMember(member_id=f"{MEMBER}{index}", metadata=bytes(60))
            for index in range(5)
        ],
    )


def offset_commit_request() -> OffsetCommitRequest:
    """Commits of 50 partitions."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=1_000_000 + index,
            committed_leader_epoch=4,
            committed_metadata="",
        )
        for index in range(50)
    ]
    return OffsetCommitRequest(
        group_id="orders-billing",
        generation_id_or_member_epoch=3,
        member_id=MEMBER,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )


def list_offsets_response() -> ListOffsetsResponse:
    """The end offsets of 12 partitions."""
    partitions = [
        ListOffsetsPartitionResponse(
            partition_index=index, timestamp=-1, offset=1_000_000 + index, leader_epoch=4
        )
        for index in range(12)
    ]
    return ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="orders", partitions=partitions)]
    )


def find_coordinator_request() -> FindCoordinatorRequest:
    """A request for the coordinator of a group."""
    return FindCoordinatorRequest(key="orders-billing", key_type=0)


def heartbeat_request() -> HeartbeatRequest:
    """A heartbeat of a group member."""
    return HeartbeatRequest(group_id="orders-billing", generation_id=3, member_id=MEMBER)


MAKERS: Final[tuple[tuple[Callable[[], Message], int], ...]] = (
    (fetch_request, 12),
    (api_versions_response, 3),
    (metadata_response, 9),
    (join_group_response, 7),
    (offset_commit_request, 8),
    (list_offsets_response, 6),
    (find_coordinator_request, 3),
    (heartbeat_request, 4),
)


def bodies() -> list[Body]:
    """Make the eight messages."""
    return [Body(make(), version) for make, version in MAKERS]
