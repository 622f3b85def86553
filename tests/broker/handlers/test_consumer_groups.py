"""Consumer groups of KIP-848, bytes in, bytes out."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode, Message
from kafkawire.broker import Bounds
from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.configs import ResourceType
from kafkawire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafkawire.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.delete_groups_request import DeleteGroupsRequest
from kafkawire.messages.delete_groups_response import DeleteGroupsResponse
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import DescribeConfigsResponse
from kafkawire.messages.describe_groups_request import DescribeGroupsRequest
from kafkawire.messages.describe_groups_response import DescribeGroupsResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
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
from kafkawire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafkawire.messages.update_features_response import UpdateFeaturesResponse
from tests.broker.harness import Client, Harness
from tests.broker.members import SUBSCRIBED, Members, commit, committed, coordinator

E = ErrorCode
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}


@pytest.fixture
def harness() -> Harness:
    return Harness(topics={"t": 4, "u": 1}, settings=SETTINGS)


def heartbeat(member_id: str, epoch: int = 0, **fields: object) -> Message:
    """Return the request of a member of `g` that is subscribed to `t`."""
    joins: dict[str, object] = {}
    if epoch == 0:
        joins = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }
    given = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, **joins, **fields}
    return ConsumerGroupHeartbeatRequest(**given)  # type: ignore[arg-type]


def beat(
    client: Client, member_id: str, epoch: int = 0, version: int = 1, **fields: object
) -> ConsumerGroupHeartbeatResponse:
    request = heartbeat(member_id, epoch, **fields)
    return client.exchange(request, version, ConsumerGroupHeartbeatResponse)


def assigned(response: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert response.assignment is not None
    return [index for each in response.assignment.topic_partitions for index in each.partitions]


def owned(harness: Harness, *indexes: int) -> list[TopicPartitions]:
    topic = harness.topic("t")
    assert topic is not None
    return [TopicPartitions(topic_id=topic.topic_id, partitions=list(indexes))]


def described(client: Client, group: str = "g") -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    [found] = client.exchange(request, 1, ConsumerGroupDescribeResponse).groups
    return found


def shown(client: Client) -> dict[str, tuple[int, list[int], list[int]]]:
    """Member -> epoch, assignment and target assignment."""
    return {
        each.member_id: (
            each.member_epoch,
            [index for topic in each.assignment.topic_partitions for index in topic.partitions],
            [i for topic in each.target_assignment.topic_partitions for i in topic.partitions],
        )
        for each in described(client).members
    }


def two_members(harness: Harness) -> Client:
    """Let `a` have 0 and 1, and `b` have 2 and 3."""
    client = coordinator(harness, "g")
    assert assigned(beat(client, "a")) == [0, 1, 2, 3]
    assert assigned(beat(client, "b", instance_id="i")) == []
    assert assigned(beat(client, "a", 2, topic_partitions=owned(harness, 0, 1, 2, 3))) == [0, 1]
    assert beat(client, "a", 2, topic_partitions=owned(harness, 0, 1)).member_epoch == 3
    assert assigned(beat(client, "b", 3)) == [2, 3]
    return client


def test_a_group_is_described_and_listed(harness: Harness) -> None:
    client = two_members(harness)
    group = described(client)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert group.assignor_name == "uniform"
    assert shown(client) == {"a": (3, [0, 1], [0, 1]), "b": (3, [2, 3], [2, 3])}
    member = group.members[1]
    assert (member.instance_id, member.client_id, member.member_type) == ("i", "tester", 1)
    assert member.subscribed_topic_names == ["t"]
    assert member.assignment.topic_partitions[0].topic_name == "t"
    for types, states, expected in (
        (["consumer"], [], ["g"]),
        (["classic"], [], []),
        ([], ["stable"], ["g"]),
        ([], ["Empty"], []),
    ):
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        groups = client.exchange(request, 5, ListGroupsResponse).groups
        assert [each.group_id for each in groups] == expected
        for each in groups:
            assert (each.protocol_type, each.group_type, each.group_state) == (
                "consumer", "consumer", "Stable")  # fmt: skip


def test_the_classic_description_has_no_such_group(harness: Harness) -> None:
    client = two_members(harness)
    [group] = client.exchange(DescribeGroupsRequest(groups=["g"]), 6, DescribeGroupsResponse).groups
    assert (group.error_code, group.group_state) == (E.GROUP_ID_NOT_FOUND, "Dead")
    assert group.error_message == "Group g is not a classic group."
    assert described(client, "x").error_message == "Group x not found."


def test_members_commit_and_fetch_with_their_epoch(harness: Harness) -> None:
    client = two_members(harness)
    members = Members([("a", None)], 3)
    assert commit(client, "g", {("t", 0): (7, -1, "m")}, members, version=9) == {E.NONE}
    assert committed(harness, "g") == {("t", 0): (7, -1, "m")}
    stale = Members([("a", None)], 2)
    assert commit(client, "g", {("t", 3): (8, -1, "")}, stale, 9) == {E.STALE_MEMBER_EPOCH}
    assert commit(client, "g", {("t", 0): (8, -1, "")}, members, 8) == {E.UNSUPPORTED_VERSION}
    unknown = Members([("x", None)], 3)
    assert commit(client, "g", {("t", 0): (8, -1, "")}, unknown, 9) == {E.UNKNOWN_MEMBER_ID}
    for member_id, epoch, error in (
        ("a", 3, E.NONE),
        ("a", 1, E.STALE_MEMBER_EPOCH),
        ("x", 2, E.UNKNOWN_MEMBER_ID),
        (None, -1, E.NONE),
    ):
        fetched = OffsetFetchRequestGroup(
            group_id="g", member_id=member_id, member_epoch=epoch, topics=None
        )
        response = client.exchange(OffsetFetchRequest(groups=[fetched]), 9, OffsetFetchResponse)
        assert response.groups[0].error_code == error


@pytest.mark.parametrize(
    ("release", "errors"),
    [
        ("4.4", {0: E.NONE, 1: E.NONE, 2: E.STALE_MEMBER_EPOCH}),
        ("4.2", dict.fromkeys(range(3), E.STALE_MEMBER_EPOCH)),
    ],
)
@pytest.mark.parametrize("restored", [False, True])
def test_commits_with_an_earlier_epoch_of_partitions_that_stayed(
    release: str, errors: dict[int, ErrorCode], restored: bool
) -> None:
    harness = Harness(topics={"t": 4}, settings=SETTINGS, release=release)
    two_members(harness)
    harness = harness.restored() if restored else harness
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=2,
        member_id="a",
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in range(3)
                ],
            )
        ],
    )
    response = coordinator(harness, "g").exchange(request, 9, OffsetCommitResponse)
    [topic] = response.topics
    assert {each.partition_index: each.error_code for each in topic.partitions} == errors
    assert {at for _, at in committed(harness, "g")} == {
        index for index, error in errors.items() if not error
    }


def test_offsets_of_subscribed_topics_are_not_deleted(harness: Harness) -> None:
    client = two_members(harness)
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in "tu"
    ]
    request = OffsetDeleteRequest(group_id="g", topics=topics)
    response = client.exchange(request, 0, OffsetDeleteResponse)
    errors = [each.error_code for topic in response.topics for each in topic.partitions]
    assert errors == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE]


def test_a_group_with_members_is_not_deleted(harness: Harness) -> None:
    client = two_members(harness)
    commit(client, "g", {("t", 0): (7, -1, "m")}, Members([("a", None)], 3), version=9)
    request = DeleteGroupsRequest(groups_names=["g"])
    response = client.exchange(request, 2, DeleteGroupsResponse)
    assert response.results[0].error_code == E.NON_EMPTY_GROUP
    beat(client, "a", -1)
    beat(client, "b", -1, instance_id="i")
    assert described(client).group_state == "Empty"
    response = client.exchange(request, 2, DeleteGroupsResponse)
    assert response.results[0].error_code == E.NONE
    assert described(client).error_code == E.GROUP_ID_NOT_FOUND
    assert committed(harness, "g") == {}
    restored = harness.restored()
    assert described(coordinator(restored, "g")).error_code == E.GROUP_ID_NOT_FOUND


def test_a_session_that_expires(harness: Harness) -> None:
    client = two_members(harness)
    harness.advance(30.0)
    beat(client, "a", 3)
    harness.advance(16.0)
    assert list(shown(client)) == ["a"]
    assert beat(client, "b", 3).error_code == E.UNKNOWN_MEMBER_ID


def test_a_restored_cluster_knows_the_group(harness: Harness) -> None:
    client = two_members(harness)
    before = shown(client)
    restored = harness.restored()
    again = coordinator(restored, "g")
    assert shown(again) == before
    assert beat(again, "a", 3).member_epoch == 3
    assert beat(again, "b", 3).assignment is None
    restored.advance(46.0)
    assert shown(again) == {}


def test_another_coordinator_goes_on_with_the_group() -> None:
    harness = Harness(2, topics={"t": 4}, settings=SETTINGS)
    client = two_members(harness)
    before = shown(client)
    index = harness.groups(client.node_id).partition_of("g")
    harness.move_leader(OFFSETS_TOPIC, index, 3 - client.node_id)
    assert beat(client, "a", 3).error_code == E.NOT_COORDINATOR
    other = coordinator(harness, "g")
    assert other.node_id != client.node_id
    assert shown(other) == before
    assert beat(other, "a", 3).error_code == E.NONE


def test_the_group_epoch_rises_with_the_racks_of_replicas() -> None:
    """As KIP-1101 has it; the assignors use no racks."""
    harness = Harness(topics={"t": 2}, settings=SETTINGS)
    client = coordinator(harness, "g")
    beat(client, "a", rack_id="east")
    assert described(client).group_epoch == 2
    metadata = harness.broker().metadata
    image = metadata.image
    assert beat(client, "a", 2).member_epoch == 2
    image.brokers[1] = image.brokers[1]._replace(rack="west")
    image.offset += 1
    assert beat(client, "a", 2).member_epoch == 3


# -- classic groups


def joined(client: Client, group: str, member_id: str = "") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED)],
    )
    return client.exchange(request, 3, JoinGroupResponse)


def test_without_migration_a_group_is_of_one_type_while_it_has_members() -> None:
    settings = SETTINGS | {"group.consumer.migration.policy": "disabled"}
    harness = Harness(topics={"t": 4, "u": 1}, settings=settings)
    client = two_members(harness)
    assert joined(client, "g").error_code == E.INCONSISTENT_GROUP_PROTOCOL
    other = coordinator(harness, "classic")
    assert joined(other, "classic").error_code == E.NONE
    response = beat(other, "a", group_id="classic")
    assert response.error_code == E.GROUP_ID_NOT_FOUND
    assert response.error_message == (
        "Cannot upgrade classic group classic to consumer group because online upgrade is disabled."
    )
    response = beat(other, "a", 3, group_id="classic")
    assert response.error_message == "Group classic is not a consumer group."


def test_an_empty_group_may_change_its_type(harness: Harness) -> None:
    client = coordinator(harness, "g")
    assert commit(client, "g", {("t", 0): (7, -1, "m")}) == {E.NONE}
    assert assigned(beat(client, "a")) == [0, 1, 2, 3]
    assert committed(harness, "g") == {("t", 0): (7, -1, "m")}
    beat(client, "a", -1)
    assert joined(client, "g").error_code == E.NONE
    assert described(client).error_message == "Group g is not a consumer group."
    assert committed(harness, "g") == {("t", 0): (7, -1, "m")}
    restored = coordinator(harness.restored(), "g")
    assert described(restored).error_code == E.GROUP_ID_NOT_FOUND


def test_a_join_of_an_unknown_member_deletes_an_empty_group(harness: Harness) -> None:
    client = coordinator(harness, "g")
    assert commit(client, "g", {("t", 0): (7, -1, "m")}) == {E.NONE}
    for epoch in (0, -1):
        beat(client, "a", epoch)
    assert joined(client, "g", "k").error_code == E.UNKNOWN_MEMBER_ID
    assert described(client).error_code == E.GROUP_ID_NOT_FOUND
    assert committed(harness, "g") == {("t", 0): (7, -1, "m")}
    restored = coordinator(harness.restored(), "g")
    assert described(restored).error_code == E.GROUP_ID_NOT_FOUND


# -- configurations of groups


def altered(client: Client, name: str, value: str, group: str = "g") -> tuple[int, str | None]:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=ResourceType.GROUP, resource_name=group, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [found] = client.exchange(request, 1, IncrementalAlterConfigsResponse).responses
    return found.error_code, found.error_message


def shown_configs(client: Client, group: str = "g") -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.GROUP, resource_name=group, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    [found] = client.exchange(request, 4, DescribeConfigsResponse).results
    return {each.name: (each.value, each.config_source) for each in found.configs}


def test_a_group_has_its_own_configuration(harness: Harness) -> None:
    client = coordinator(harness, "g")
    beat(client, "a")
    assert shown_configs(client) == {
        "consumer.assignment.interval.ms": ("0", 4),
        "consumer.heartbeat.interval.ms": ("5000", 5),
        "consumer.session.timeout.ms": ("45000", 5),
        "share.assignment.interval.ms": ("1000", 5),
        "share.auto.offset.reset": ("latest", 5),
        "share.delivery.count.limit": ("5", 5),
        "share.heartbeat.interval.ms": ("5000", 5),
        "share.isolation.level": ("read_uncommitted", 5),
        "share.partition.max.record.locks": ("2000", 5),
        "share.record.lock.duration.ms": ("30000", 5),
        "share.renew.acknowledge.enable": ("true", 5),
        "share.session.timeout.ms": ("45000", 5),
        "errors.deadletterqueue.copy.record.enable": ("false", 5),
        "errors.deadletterqueue.topic.name": ("", 5),
        "streams.assignment.interval.ms": ("1000", 5),
        "streams.assignor.name": ("sticky", 5),
        "streams.heartbeat.interval.ms": ("5000", 5),
        "streams.initial.rebalance.delay.ms": ("3000", 5),
        "streams.num.standby.replicas": ("0", 5),
        "streams.rack.aware.assignment.tags": ("", 5),
        "streams.session.timeout.ms": ("45000", 5),
    }
    assert altered(client, "consumer.session.timeout.ms", "50000") == (E.NONE, None)
    assert altered(client, "consumer.heartbeat.interval.ms", "7000") == (E.NONE, None)
    assert shown_configs(client)["consumer.session.timeout.ms"] == ("50000", 8)
    assert shown_configs(client, "other")["consumer.session.timeout.ms"] == ("45000", 5)
    assert beat(client, "a", 2).heartbeat_interval_ms == 7000
    harness.advance(49.0)
    assert list(shown(client)) == ["a"]
    harness.advance(1.5)
    assert shown(client) == {}


def test_the_limits_of_the_broker_apply_to_configurations_of_groups(harness: Harness) -> None:
    client = coordinator(harness, "g")
    key = "consumer.heartbeat.interval.ms"
    refused = E.INVALID_CONFIG, f"{key} must be in the range 5000 to 15000 inclusive."
    for value in ("1", "1000000"):
        assert altered(client, key, value) == refused
    # the controller does not know the limits of brokers
    controller = harness.client(listener="CONTROLLER")
    assert altered(controller, key, "1") == (E.NONE, None)
    assert beat(client, "a").heartbeat_interval_ms == 5000
    assert altered(controller, key, "1000000") == (E.NONE, None)
    assert beat(client, "a", 2).heartbeat_interval_ms == 15000


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("consumer.session.timeout", "1", "Unknown group config name: consumer.session.timeout"),
        (
            "consumer.session.timeout.ms",
            "0",
            "Invalid value 0 for configuration consumer.session.timeout.ms: "
            "Value must be at least 1",
        ),
        (
            "consumer.assignment.interval.ms",
            "soon",
            "Invalid value soon for configuration consumer.assignment.interval.ms: "
            "Not a number of type INT",
        ),
    ],
)
def test_an_invalid_configuration_of_a_group(
    harness: Harness, name: str, value: str, reason: str
) -> None:
    client = coordinator(harness, "g")
    assert altered(client, name, value) == (E.INVALID_CONFIG, reason)


# -- releases and limits


@pytest.mark.parametrize("release", ["3.7", "3.9"])
def test_releases_without_the_feature_have_the_api_only(release: str) -> None:
    client = coordinator(Harness(topics={"t": 4}, release=release), "g")
    assert beat(client, "a", version=0).error_code == E.UNSUPPORTED_VERSION


def test_a_cluster_whose_feature_is_downgraded_refuses_it(harness: Harness) -> None:
    client = coordinator(harness, "g")
    assert beat(client, "a").error_code == E.NONE
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    request = UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[update])
    assert client.exchange(request, 1, UpdateFeaturesResponse).error_code == E.NONE
    assert beat(client, "a", 2).error_code == E.UNSUPPORTED_VERSION


def test_a_broker_without_the_protocol_refuses_it() -> None:
    settings = {"group.coordinator.rebalance.protocols": "classic"}
    client = coordinator(Harness(topics={"t": 4}, settings=settings), "g")
    assert beat(client, "a").error_code == E.UNSUPPORTED_VERSION


def test_version_0_chooses_member_ids(harness: Harness) -> None:
    client = coordinator(harness, "g")
    response = beat(client, "", version=0)
    assert response.member_id
    assert beat(client, response.member_id, 2, version=0).error_code == E.NONE
    assert beat(client, "").error_message == "MemberId can't be empty."


def test_limits() -> None:
    bounds = Bounds(groups=1, members=2, group_bytes=200)
    client = coordinator(Harness(topics={"t": 4}, settings=SETTINGS, bounds=bounds), "g")
    assert beat(client, "a").error_code == E.NONE
    assert beat(client, "a", group_id="h").error_code == E.POLICY_VIOLATION
    large = beat(client, "b", subscribed_topic_names=["x" * 200])
    assert large.error_code == E.GROUP_MAX_SIZE_REACHED
    assert beat(client, "b").error_code == E.NONE
    assert beat(client, "c").error_code == E.GROUP_MAX_SIZE_REACHED
    beat(client, "b", -1)
    assert beat(client, "c").error_code == E.NONE


def test_commits_of_one_group_do_not_create_a_classic_one(harness: Harness) -> None:
    client = two_members(harness)
    requested = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=3,
        member_id="a",
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
        ],
    )
    client.exchange(requested, 9, OffsetCommitResponse)
    response = client.exchange(ListGroupsRequest(), 5, ListGroupsResponse)
    assert [each.group_type for each in response.groups] == ["consumer"]
