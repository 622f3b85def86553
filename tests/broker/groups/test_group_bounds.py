"""The limits of what groups can make grow: groups, members, metadata, committed offsets."""

from __future__ import annotations

from kafkawire import ErrorCode
from kafkawire.broker import Bounds
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kafkawire.messages.sync_group_response import SyncGroupResponse
from tests.broker.harness import Client, Harness
from tests.broker.test_hostile import undisturbed

E = ErrorCode


def join(client: Client, group: str, member_id: str = "", data: bytes = b"") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=data)],
    )
    return client.exchange(request, 9, JoinGroupResponse)


def commit(client: Client, group: str, *partitions: int) -> list[int]:
    requested = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, committed_metadata=""
        )
        for index in partitions
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=requested)],
    )
    response = client.exchange(request, 8, OffsetCommitResponse)
    return [each.error_code for topic in response.topics for each in topic.partitions]


def grouped(bounds: Bounds) -> tuple[Harness, Client]:
    """A cluster with `__consumer_offsets`."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    harness = Harness(topics={"t": 8}, settings=settings, bounds=bounds)
    client = harness.client()
    client.exchange(FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse)
    return harness, client


def test_there_are_only_so_many_groups() -> None:
    harness, client = grouped(Bounds(groups=2))
    assert commit(client, "a", 0) == [E.NONE]
    assert join(client, "b").error_code == E.MEMBER_ID_REQUIRED
    assert commit(client, "c", 0, 1) == [E.POLICY_VIOLATION] * 2
    assert join(client, "c").error_code == E.POLICY_VIOLATION
    assert commit(client, "a", 1) == [E.NONE]
    harness.advance(11)  # nobody came back with the id
    harness.advance(600)
    assert commit(harness.client(), "c", 0) == [E.NONE]


def test_a_join_that_fails_leaves_no_group() -> None:
    harness, client = grouped(Bounds(groups=2))
    request = JoinGroupRequest(group_id="x", session_timeout_ms=10_000, protocol_type="consumer")
    for number in range(5):
        request.group_id = f"x{number}"
        response = client.exchange(request, 9, JoinGroupResponse)
        assert response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert commit(client, "a", 0) == commit(client, "b", 0) == [E.NONE]
    undisturbed(harness.client())


def test_there_are_only_so_many_members_pending_ones_included() -> None:
    harness, client = grouped(Bounds(members=3))
    for group in "abc":
        assert join(client, group).error_code == E.MEMBER_ID_REQUIRED
    assert join(client, "a").error_code == E.GROUP_MAX_SIZE_REACHED
    harness.advance(11)
    assert join(client, "a").error_code == E.MEMBER_ID_REQUIRED


def test_metadata_and_assignments_of_all_groups_are_bounded() -> None:
    _, client = grouped(Bounds(group_bytes=10_000))
    member = join(client, "a").member_id
    assert join(client, "a", member, bytes(10_000)).error_code == E.GROUP_MAX_SIZE_REACHED
    joined = join(client, "a", member, bytes(6_000))
    assert joined.error_code == E.NONE
    sync = SyncGroupRequest(
        group_id="a",
        generation_id=joined.generation_id,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member, assignment=bytes(6_000))],
    )
    assert client.exchange(sync, 5, SyncGroupResponse).error_code == E.MESSAGE_TOO_LARGE
    sync.assignments[0].assignment = bytes(1_000)
    assert client.exchange(sync, 5, SyncGroupResponse).error_code == E.NONE
    # the same again costs nothing more
    assert join(client, "a", member, bytes(6_000)).error_code == E.NONE


def test_a_client_id_is_not_repeated_at_length_in_member_ids() -> None:
    _, client = grouped(Bounds())
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client.send(request, 9, client_id="c" * 30_000)
    member_id = client.receive(JoinGroupResponse).member_id
    assert member_id.startswith("c" * 100)
    assert len(member_id) < 300


def test_there_are_only_so_many_committed_offsets() -> None:
    harness, client = grouped(Bounds(committed_offsets=5))
    assert commit(client, "a", 0, 1, 2) == [E.NONE] * 3
    assert commit(client, "b", 0, 1, 2) == [E.POLICY_VIOLATION] * 3
    assert commit(client, "a", 0, 1, 2) == [E.NONE] * 3, "no more of them than before"
    harness.delete_topics("t")
    harness.create_topic("t", 8)
    assert commit(client, "b", 0, 1, 2, 3, 4) == [E.NONE] * 5


def test_what_groups_hold_is_counted_alike_by_the_next_coordinator() -> None:
    harness = Harness(2, topics={"t": 8}, bounds=Bounds(committed_offsets=5))
    client = harness.client()
    found = client.exchange(
        FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse
    )
    first = found.coordinators[0].node_id
    assert commit(harness.client(first), "g", 0, 1, 2) == [E.NONE] * 3
    assert harness.groups(first).usage.offsets == 3
    index = harness.groups(first).partition_of("g")
    harness.move_leader("__consumer_offsets", index, 3 - first)
    assert harness.groups(first).usage.offsets == 0
    assert harness.groups(3 - first).usage.offsets == 3
    harness.advance(1.0)  # the other one follows
    assert commit(harness.client(3 - first), "g", 3, 4, 5) == [E.POLICY_VIOLATION] * 3
    assert commit(harness.client(3 - first), "g", 3, 4) == [E.NONE] * 2
