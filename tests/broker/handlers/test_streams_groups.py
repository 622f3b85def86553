"""Streams groups of KIP-1071, bytes in, bytes out: membership, tasks, internal topics, restarts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.groups.streams_groups.configured import StatusCode
from kafkawire.configs import ResourceType
from kafkawire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkawire.messages.offset_commit_response import OffsetCommitResponse
from kafkawire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkawire.messages.offset_delete_response import OffsetDeleteResponse
from kafkawire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.streams_group_heartbeat_request import (
    Endpoint,
    KeyValue,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.broker.harness import Harness
from tests.broker.members import committed, coordinator
from tests.broker.streams import (
    AT_ONCE,
    GROUP,
    StreamsMember,
    described,
    settle,
    task_ids,
    tasks_in,
    word_count,
)

E = ErrorCode
ALL_TASKS = {("0", 0), ("0", 1), ("1", 0), ("1", 1)}


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 2}, settings=AT_ONCE)


def codes(response: Any) -> list[int]:
    return [each.status_code for each in response.status or ()]


def topic_configs(harness: Harness, name: str) -> dict[str, str]:
    return dict(harness.image.config(ResourceType.TOPIC, name))


# -- joining, tasks, internal topics


def test_internal_topics_are_created_and_then_all_tasks_are_assigned(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    response = member.beat(0)
    assert codes(response) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert (response.member_epoch, tasks_in(response.active_tasks)) == (2, ())
    assert described(harness).group_state == "NotReady"
    harness.advance(1.0)
    response = member.beat()
    assert codes(response) == []
    assert set(member.held[0]) == ALL_TASKS
    assert response.member_epoch == 3
    assert described(harness).group_state == "Stable"
    for name, policy in (("g-counts-repartition", "delete"), ("g-counts-changelog", "compact")):
        topic = harness.topic(name)
        assert topic is not None
        assert len(topic.partitions) == 2
        assert topic_configs(harness, name) == {"cleanup.policy": policy}


def test_tasks_move_to_a_new_member_when_the_old_one_has_given_them_up(harness: Harness) -> None:
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join()
    second.beat(0)
    assert second.held[0] == (), "nothing is free yet"
    held = first.held
    response = first.beat()
    assert len(tasks_in(response.active_tasks)) == 2
    second.beat()
    assert second.held[0] == (), "the first one has not said that it has given them up"
    first.beat()
    second.beat()
    assert set(first.held[0]) | set(second.held[0]) == ALL_TASKS
    assert len(second.held[0]) == 2
    assert set(first.held[0]) < set(held[0]), "it has kept what it could"


def test_a_member_that_keeps_revoked_tasks_is_removed(harness: Harness) -> None:
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join()
    second.beat(0)
    held = first.held
    first.beat()
    first.held = held
    for _ in range(13):
        harness.advance(5.0)
        second.beat()
        response = first.exchange()
    assert response.error_code == E.UNKNOWN_MEMBER_ID
    second.beat()
    assert set(second.held[0]) == ALL_TASKS


def test_standby_tasks_are_at_another_process_and_become_active_there(harness: Harness) -> None:
    harness.alter_configs(ResourceType.GROUP, GROUP, {"streams.num.standby.replicas": "1"})
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join()
    second.beat(0)
    settle(first, second)
    for one, other in ((first, second), (second, first)):
        stateful = {task for task in other.held[0] if task[0] == "1"}
        assert set(one.held[1]) == stateful
    copies = set(second.held[1])
    first.exchange(-1)
    second.beat()
    assert copies <= set(second.held[0])
    assert second.held[1] == ()


def test_a_new_group_waits_for_more_members() -> None:
    harness = Harness(
        topics={"t": 2, "g-counts-repartition": 2, "g-counts-changelog": 2},
        settings={"group.streams.assignment.interval.ms": "0"},
    )
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    response = first.beat(0)
    assert codes(response) == [StatusCode.ASSIGNMENT_DELAYED]
    assert first.epoch == 1
    second.beat(0)
    harness.advance(3.5)
    first.beat()
    second.beat()
    assert (len(first.held[0]), len(second.held[0])) == (2, 2)
    assert codes(first.beat()) == []


def test_assignments_have_an_interval() -> None:
    harness = Harness(
        topics={"t": 2, "g-counts-repartition": 2, "g-counts-changelog": 2},
        settings={"group.streams.initial.rebalance.delay.ms": "0"},
    )
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.beat(0)
    assert set(first.held[0]) == ALL_TASKS
    assert codes(second.beat(0)) == [StatusCode.ASSIGNMENT_DELAYED]
    assert described(harness).group_state == "Assigning"
    harness.advance(1.5)
    assert codes(second.beat()) == []
    settle(first, second)
    assert (len(first.held[0]), len(second.held[0])) == (2, 2)


# -- topics that are missing, or do not fit


def test_source_topics_that_are_missing_are_named_until_they_exist(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    response = member.beat(0, topology=word_count(source="absent"))
    [status] = response.status or []
    assert status.status_code == StatusCode.MISSING_SOURCE_TOPICS
    assert "absent" in status.status_detail
    assert harness.topic("g-counts-repartition") is None
    harness.create_topic("absent", 3)
    assert codes(member.beat()) == [StatusCode.MISSING_INTERNAL_TOPICS]
    harness.advance(1.0)
    member.beat()
    assert len(member.held[0]) == 6


def test_internal_topics_with_other_partitions_are_named(harness: Harness) -> None:
    harness.create_topic("g-counts-changelog", 5)
    [status] = StreamsMember(harness, "a").beat(0).status or []
    assert status.status_code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "g-counts-changelog" in status.status_detail


def test_more_partitions_of_a_source_are_more_tasks(harness: Harness) -> None:
    single = Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])])
    member = StreamsMember(harness, "a")
    member.beat(0, topology=single)
    assert len(member.held[0]) == 2
    harness.delete_topics("t")
    assert codes(member.beat()) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert not member.held[0]
    harness.create_topic("t", 4)
    settle(member)
    assert len(member.held[0]) == 4


def test_a_topic_that_cannot_be_created_is_named(harness: Harness) -> None:
    changelog = TopicInfo(
        name="changelog", topic_configs=[KeyValue(key="cleanup.policy", value="nonsense")]
    )
    topology = Topology(
        epoch=0,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=["t"], state_changelog_topics=[changelog])
        ],
    )
    member = StreamsMember(harness, "a")
    member.beat(0, topology=topology)
    harness.advance(1.0)
    [status] = member.beat().status or []
    assert "Creation failed: changelog (" in status.status_detail
    harness.advance(11.0)
    [status] = member.beat().status or []
    assert "Creation failed" not in status.status_detail, "it is requested again"


# -- who may send what


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": ""}, E.INVALID_REQUEST),
        ({"group_id": ""}, E.INVALID_REQUEST),
        ({"instance_id": ""}, E.INVALID_REQUEST),
        ({"rack_id": ""}, E.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, E.INVALID_REQUEST),
        ({"active_tasks": task_ids([("0", 0)])}, E.INVALID_REQUEST),
        ({"topology": None}, E.INVALID_REQUEST),
        ({"epoch": -2}, E.INVALID_REQUEST),
        ({"epoch": -3}, E.INVALID_REQUEST),
        ({"epoch": 1, "standby_tasks": None}, E.INVALID_REQUEST),
        ({"epoch": 1, "topology": word_count()}, E.INVALID_REQUEST),
        ({"epoch": 1}, E.GROUP_ID_NOT_FOUND),
        ({"epoch": -1}, E.GROUP_ID_NOT_FOUND),
        ({"topology": word_count(source="__consumer_offsets")}, E.STREAMS_INVALID_TOPOLOGY),
        ({"topology": word_count(source="not/valid")}, E.STREAMS_INVALID_TOPOLOGY),
        ({"topology": word_count(epoch=-1)}, E.STREAMS_INVALID_TOPOLOGY),
        (
            {
                "task_offsets": [
                    TaskOffset(subtopology_id="0", partition=0, offset=at) for at in (1, 2)
                ]
            },
            E.INVALID_REQUEST,
        ),
    ],
)
def test_requests_that_are_not_valid(
    harness: Harness, fields: dict[str, Any], error: ErrorCode
) -> None:
    response = StreamsMember(harness, "a").exchange(**{"epoch": 0, **fields})
    assert response.error_code == error
    assert response.error_message
    assert described(harness).error_code == E.GROUP_ID_NOT_FOUND, "it changes nothing"


def subtopology(**fields: Any) -> Topology:
    return Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", **fields)])


@pytest.mark.parametrize(
    "topology",
    [
        subtopology(source_topic_regex=["t.*"], source_topics=["t"]),
        subtopology(
            source_topics=["t"], state_changelog_topics=[TopicInfo(name="c", partitions=2)]
        ),
        subtopology(),
        subtopology(source_topics=["t"], repartition_source_topics=[TopicInfo(name="never")]),
        subtopology(
            repartition_sink_topics=["loop"], repartition_source_topics=[TopicInfo(name="loop")]
        ),
        Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])] * 2),
    ],
)
def test_topologies_that_are_not_valid(harness: Harness, topology: Topology) -> None:
    response = StreamsMember(harness, "a").exchange(0, topology=topology)
    assert response.error_code in (E.STREAMS_INVALID_TOPOLOGY, E.INVALID_REQUEST)
    assert described(harness).error_code == E.GROUP_ID_NOT_FOUND


def test_members_with_another_epoch_are_fenced(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()
    assert member.exchange(member.epoch + 1).error_code == E.FENCED_MEMBER_EPOCH
    assert member.exchange(1).error_code == E.FENCED_MEMBER_EPOCH
    before = member.epoch - 1
    assert member.exchange(before).error_code == E.NONE, "it missed the last response"
    lost = task_ids([("0", 0), ("1", 7)])
    assert member.exchange(before, active_tasks=lost).error_code == E.FENCED_MEMBER_EPOCH
    none = [TaskIds(subtopology_id="0", partitions=[])]
    assert member.exchange(before, standby_tasks=none).error_code == E.FENCED_MEMBER_EPOCH
    assert member.exchange(active_tasks=lost).error_code == E.INVALID_REQUEST, "no such task"
    unknown = StreamsMember(harness, "b")
    assert unknown.exchange(3).error_code == E.UNKNOWN_MEMBER_ID


def test_a_topology_is_updated_only_by_a_new_group(harness: Harness) -> None:
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join(topology=word_count(epoch=1))
    assert codes(second.beat(0)) == [StatusCode.STALE_TOPOLOGY]
    newer = StreamsMember(harness, "c").exchange(0, topology=word_count(epoch=2))
    assert newer.error_code == E.INVALID_REQUEST
    other = StreamsMember(harness, "c").exchange(0, topology=word_count(1, source="u"))
    assert other.error_code == E.INVALID_REQUEST


def test_the_group_has_a_largest_size() -> None:
    harness = Harness(topics={"t": 2}, settings={**AT_ONCE, "group.streams.max.size": "1"})
    StreamsMember(harness, "a").join()
    assert StreamsMember(harness, "b").exchange(0).error_code == E.GROUP_MAX_SIZE_REACHED
    assert StreamsMember(harness, "a").exchange(0).error_code == E.NONE


def test_static_members_come_back_with_their_tasks(harness: Harness) -> None:
    first = StreamsMember(harness, "a", instance_id="one")
    first.join()
    tasks = first.held
    rival = StreamsMember(harness, "b", instance_id="one")
    assert rival.exchange(0).error_code == E.UNRELEASED_INSTANCE_ID
    assert rival.exchange(3).error_code == E.FENCED_INSTANCE_ID
    assert StreamsMember(harness, "c", instance_id="two").exchange(3).error_code == (
        E.UNKNOWN_MEMBER_ID
    )
    assert first.exchange(-2).member_epoch == -2
    harness.advance(30.0)
    rival.fields["process_id"] = first.fields["process_id"]
    rival.beat(0)
    assert rival.held == tasks
    assert first.exchange(3).error_code == E.FENCED_INSTANCE_ID
    [member] = described(harness).members
    assert (member.member_id, member.instance_id) == ("b", "one")
    assert rival.exchange(-1).member_epoch == -1
    assert described(harness).group_state == "Empty"


def test_sessions_expire(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()
    harness.advance(44.0)
    member.beat()
    harness.advance(44.0)
    assert described(harness).group_state == "Stable"
    harness.advance(2.0)
    assert described(harness).group_state == "Empty"
    assert member.exchange().error_code == E.UNKNOWN_MEMBER_ID


def test_a_shutdown_reaches_all_members_until_they_have_left(harness: Harness) -> None:
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join()
    second.beat(0)
    first.beat(shutdown_application=True)
    assert StatusCode.SHUTDOWN_APPLICATION in codes(second.beat())
    first.exchange(-1)
    assert StatusCode.SHUTDOWN_APPLICATION in codes(second.beat())
    second.exchange(-1)
    assert StatusCode.SHUTDOWN_APPLICATION not in codes(first.beat(0))


def test_members_know_the_partitions_at_each_endpoint(harness: Harness) -> None:
    first = StreamsMember(harness, "a", user_endpoint=Endpoint(host="one", port=65_535))
    first.join()
    response = first.beat(endpoint_information_epoch=-1)
    [endpoint] = response.partitions_by_user_endpoint or []
    assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("one", 65_535)
    assert {each.topic: each.partitions for each in endpoint.active_partitions} == {
        "t": [0, 1],
        "g-counts-repartition": [0, 1],
    }
    unchanged = first.beat(endpoint_information_epoch=response.endpoint_information_epoch)
    assert unchanged.partitions_by_user_endpoint is None


def test_members_without_the_tags_of_the_group_are_told_so(harness: Harness) -> None:
    configs = {"streams.rack.aware.assignment.tags": "zone"}
    harness.alter_configs(ResourceType.GROUP, GROUP, configs)
    member = StreamsMember(harness, "a")
    assert StatusCode.MISSING_CLIENT_TAGS in codes(member.beat(0))
    assert StatusCode.MISSING_CLIENT_TAGS not in codes(member.beat(version=0))
    tags = [KeyValue(key="zone", value="x")]
    assert StatusCode.MISSING_CLIENT_TAGS not in codes(member.beat(client_tags=tags))


# -- the other APIs


def test_groups_are_described(harness: Harness) -> None:
    member = StreamsMember(harness, "a", rack_id="r", client_tags=[KeyValue(key="zone", value="x")])
    member.join()
    member.beat(
        task_offsets=[TaskOffset(subtopology_id="1", partition=1, offset=7)],
        task_end_offsets=[TaskOffset(subtopology_id="1", partition=1, offset=9)],
    )
    group = described(
        harness, include_authorized_operations=True, include_topology_description=True
    )
    assert (group.group_state, group.assignor_name) == ("Stable", "sticky")
    assert group.group_epoch == group.assignment_epoch == member.epoch
    assert group.topology_description_status == 1
    assert group.authorized_operations > 0
    assert group.topology is not None
    subtopologies = group.topology.subtopologies or []
    assert [each.subtopology_id for each in subtopologies] == ["0", "1"]
    [repartition] = subtopologies[1].repartition_source_topics
    assert (repartition.name, repartition.partitions) == ("g-counts-repartition", 2)
    [described_member] = group.members
    assert described_member.rack_id == "r"
    assert [each.key for each in described_member.client_tags] == ["zone"]
    assert [each.offset for each in described_member.task_offsets] == [7]
    assert [each.offset for each in described_member.task_end_offsets] == [9]
    assert set(tasks_in(described_member.assignment.active_tasks)) == ALL_TASKS
    assert set(tasks_in(described_member.target_assignment.active_tasks)) == ALL_TASKS
    assert described(harness, "absent").error_code == E.GROUP_ID_NOT_FOUND


def commit(
    harness: Harness, member_id: str, epoch: int, topic: str = "t", version: int = 9
) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)],
            )
        ],
    )
    response = coordinator(harness, GROUP).exchange(request, version, OffsetCommitResponse)
    return ErrorCode(response.topics[0].partitions[0].error_code)


def test_members_commit_the_offsets_of_their_tasks(harness: Harness) -> None:
    harness.create_topic("u")
    member = StreamsMember(harness, "a")
    member.join()
    assert commit(harness, "a", member.epoch) is E.NONE
    assert commit(harness, "a", member.epoch, version=8) is E.UNSUPPORTED_VERSION
    assert commit(harness, "b", member.epoch) is E.UNKNOWN_MEMBER_ID
    assert commit(harness, "a", member.epoch + 1) is E.STALE_MEMBER_EPOCH
    assert commit(harness, "", -1) is E.UNKNOWN_MEMBER_ID
    second = StreamsMember(harness, "b")
    second.beat(0)
    before = member.epoch
    settle(member, second)
    assert member.epoch > before
    assert ("0", 0) in member.held[0]
    assert commit(harness, "a", before) is E.NONE, "it has had the task since then"
    assert commit(harness, "b", before) is E.STALE_MEMBER_EPOCH
    assert commit(harness, "a", before, topic="u") is E.STALE_MEMBER_EPOCH
    assert committed(harness, GROUP)["t", 0][0] == 5


def test_members_fetch_offsets_with_their_epoch(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()

    def error(member_id: str | None, epoch: int) -> int:
        group = OffsetFetchRequestGroup(
            group_id=GROUP, topics=None, member_id=member_id, member_epoch=epoch
        )
        request = OffsetFetchRequest(groups=[group])
        [found] = coordinator(harness, GROUP).exchange(request, 9, OffsetFetchResponse).groups
        return found.error_code

    assert error(None, -1) == E.NONE
    assert error("a", member.epoch) == E.NONE
    assert error("a", member.epoch + 1) == E.STALE_MEMBER_EPOCH
    assert error("b", 1) == E.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_are_read_are_not_deleted(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()
    commit(harness, "a", member.epoch)

    def delete() -> int:
        topic = OffsetDeleteRequestTopic(
            name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
        response = coordinator(harness, GROUP).exchange(request, 0, OffsetDeleteResponse)
        return response.topics[0].partitions[0].error_code

    assert delete() == E.GROUP_SUBSCRIBED_TO_TOPIC
    member.exchange(-1)
    assert delete() == E.NONE
    assert committed(harness, GROUP) == {}


def test_groups_are_listed_and_deleted_without_members(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()
    client = coordinator(harness, GROUP)

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        response = client.exchange(ListGroupsRequest(**filters), 5, ListGroupsResponse)  # type: ignore[arg-type]
        return [(each.group_id, each.protocol_type, each.group_type) for each in response.groups]

    def delete() -> int:
        request = DeleteGroupsRequest(groups_names=[GROUP])
        return client.exchange(request, 2, DeleteGroupsResponse).results[0].error_code

    assert listed(types_filter=["streams"]) == [(GROUP, "streams", "streams")]
    assert listed(types_filter=["consumer"]) == []
    assert listed(states_filter=["Stable"]) == [(GROUP, "streams", "streams")]
    assert delete() == E.NON_EMPTY_GROUP
    member.exchange(-1)
    assert delete() == E.NONE
    assert listed() == []
    assert described(harness).error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_that_waits_for_topics_is_listed_as_not_ready(harness: Harness) -> None:
    StreamsMember(harness, "a").beat(0, topology=word_count(source="absent"))
    request = ListGroupsRequest(states_filter=["not_ready"])
    response = coordinator(harness, GROUP).exchange(request, 5, ListGroupsResponse)
    assert [each.group_state for each in response.groups] == ["NotReady"]


def joined(harness: Harness) -> int:
    """Let a member of the classic protocol join, and return the error."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return coordinator(harness, GROUP).exchange(request, 5, JoinGroupResponse).error_code


def test_a_group_is_of_one_type(harness: Harness) -> None:
    member = StreamsMember(harness, "a")
    member.join()
    client = coordinator(harness, GROUP)
    assert joined(harness) == E.INCONSISTENT_GROUP_PROTOCOL
    beat = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="c",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    response = client.exchange(beat, 1, ConsumerGroupHeartbeatResponse)
    assert response.error_code == E.GROUP_ID_NOT_FOUND
    described_as_classic = client.exchange(
        DescribeGroupsRequest(groups=[GROUP]), 6, DescribeGroupsResponse
    )
    [group] = described_as_classic.groups
    assert (group.error_code, group.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        "Group g is not a classic group.",
    )
    member.exchange(-1)
    assert joined(harness) == E.MEMBER_ID_REQUIRED, "an empty one gives way to a classic group"
    assert described(harness).error_message == "Group g is not a streams group."


def test_an_empty_classic_group_gives_way(harness: Harness) -> None:
    assert commit(harness, "", -1) is E.NONE, "that creates a classic group"
    StreamsMember(harness, "a").join()
    assert committed(harness, GROUP)["t", 0][0] == 5


# -- restarts, expiration, features


def test_another_coordinator_knows_what_the_last_one_knew() -> None:
    harness = Harness(3, {"t": 2}, {**AT_ONCE, "offsets.topic.replication.factor": "3"})
    harness.alter_configs(ResourceType.GROUP, GROUP, {"streams.num.standby.replicas": "1"})
    first, second = StreamsMember(harness, "a"), StreamsMember(harness, "b")
    first.join()
    second.beat(0)
    settle(first, second)
    commit(harness, "a", first.epoch)
    before = described(harness)
    harness.kill_broker(coordinator(harness, GROUP).node_id)
    harness.advance(30.0)
    after = described(harness)
    assert after.members == before.members
    assert (after.group_epoch, after.group_state) == (before.group_epoch, "Stable")
    tasks = first.held, second.held
    settle(first, second)
    assert (first.held, second.held) == tasks
    assert described(harness).group_epoch == before.group_epoch
    assert committed(harness, GROUP)["t", 0][0] == 5
    harness.advance(46.0)
    assert described(harness).group_state == "Empty", "sessions have begun anew"


def test_groups_without_members_or_offsets_expire() -> None:
    retention = {
        "offsets.retention.minutes": "2",
        "offsets.retention.check.interval.ms": "10000",
    }
    harness = Harness(topics={"t": 2}, settings={**AT_ONCE, **retention})
    member = StreamsMember(harness, "a")
    member.join()
    commit(harness, "a", member.epoch)
    for _ in range(5):
        harness.advance(30.0)
        member.beat()
    assert committed(harness, GROUP), "the topic is read"
    member.exchange(-1)
    harness.advance(15.0)
    assert described(harness).error_code == E.GROUP_ID_NOT_FOUND
    StreamsMember(harness, "a").join()
    assert described(harness).group_epoch == 2


def test_a_broker_without_the_protocol_refuses_it() -> None:
    settings = {**AT_ONCE, "group.coordinator.rebalance.protocols": "classic,consumer"}
    harness = Harness(topics={"t": 2}, settings=settings)
    assert StreamsMember(harness, "a").exchange(0).error_code == E.UNSUPPORTED_VERSION
    assert described(harness).error_code == E.UNSUPPORTED_VERSION
