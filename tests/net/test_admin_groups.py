"""Calls of the admin client about groups and producers, with clients of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkawire import ErrorCode
from kafkawire.blocking import Admin, Consumer, Producer, ShareConsumer
from kafkawire.client.failures import BrokerError, ClientError
from kafkawire.messages import consumer_group_describe_response as consumers
from kafkawire.messages import streams_group_describe_response as described
from kafkawire.net.admin import (
    ShareGroupOffset,
    StreamsTasks,
    StreamsTopic,
    Subtopology,
    TopologyDescription,
    TopologyDescriptionStatus,
    TopologyNode,
)
from kafkawire.net.admin.consumer_groups import classic_group_info, consumer_group_info
from kafkawire.net.admin.group_values import GroupInfo, MemberInfo
from kafkawire.net.admin.streams_groups import group_info
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_config import QUICK
from kafkawire.net.server_thread import ServerThread
from tests.net.server import test_streams_beside_kafka as streams
from tests.net.server.test_shares_beside_kafka import Peer
from tests.real.wire import Wire

ORDERS = ("orders", 0)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(ServerConfig(topics={"orders": 1}, settings=QUICK)) as server:
        yield server


@pytest.fixture
def here(server: ServerThread) -> dict[str, str]:
    return {"bootstrap.servers": server.bootstrap}


@pytest.fixture
def admin(here: dict[str, str]) -> Iterator[Admin]:
    with Admin(here) as admin:
        yield admin


def test_offsets_of_a_share_group_are_described_set_and_deleted(
    here: dict[str, str], admin: Admin
) -> None:
    admin.alter_group_config("shared", {"share.auto.offset.reset": "earliest"})
    with Producer(here) as producer:
        for number in range(3):
            producer.deliver("orders", b"%d" % number)
    with ShareConsumer({**here, "group.id": "shared"}) as consumer:
        consumer.subscribe(["orders"])
        assert consumer.poll(30)
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            admin.alter_share_group_offsets("shared", {ORDERS: 1})
    admin.alter_share_group_offsets("shared", {ORDERS: 1})
    [(partition, offset)] = admin.share_group_offsets("shared").items()
    assert (partition, offset.start_offset) == (ORDERS, 1)
    assert isinstance(offset, ShareGroupOffset)
    with pytest.raises(BrokerError, match="no-such-topic"):
        admin.alter_share_group_offsets("shared", {("no-such-topic", 0): 1})
    admin.delete_share_group_offsets("shared", ["orders"])
    assert admin.share_group_offsets("shared") == {}


def test_members_are_removed_from_a_group(here: dict[str, str], admin: Admin) -> None:
    with (
        Producer(here) as producer,
        Consumer({**here, "group.id": "g", "group.instance.id": "first"}) as consumer,
    ):
        consumer.subscribe(["orders"])
        producer.deliver("orders", b"value")
        consumer.poll(0.1)
        [member] = admin.describe_group("g").members
        assert member.group_instance_id == "first"
        with pytest.raises(BrokerError, match=r"UNKNOWN_MEMBER_ID.*member none"):
            admin.remove_members_from_group("g", member_ids=["none"])
        admin.remove_members_from_group("g", instance_ids=["first"], reason="moved")
        assert member.member_id not in {one.member_id for one in admin.describe_group("g").members}


def fenced(producer: Producer[bytes, bytes], server: ServerThread, admin: Admin) -> None:
    """Fence a producer while its transaction is open; then let it commit."""
    with producer.transaction():
        producer.deliver("orders", b"open")
        before = admin.describe_transaction("t")
        assert before.state == "Ongoing"
        busy = server.fault("InitProducerId", nth=1, error=ErrorCode.CONCURRENT_TRANSACTIONS)
        admin.fence_producer("t")
        assert busy.hit == 1
        after = admin.describe_transaction("t")
        assert after.producer_epoch > before.producer_epoch
        assert after.state != "Ongoing"


def test_a_fenced_producer_cannot_commit(
    server: ServerThread, here: dict[str, str], admin: Admin
) -> None:
    with (
        Producer({**here, "transactional.id": "t"}) as producer,
        pytest.raises(ClientError, match=r"(?i)fenced|epoch"),
    ):
        fenced(producer, server, admin)


def test_tasks_of_a_streams_group_are_sorted_by_kind() -> None:
    tasks = described.Assignment(
        active_tasks=[
            described.TaskIds(subtopology_id="1", partitions=[1, 0]),
            described.TaskIds(subtopology_id="0", partitions=[2]),
        ],
        standby_tasks=[described.TaskIds(subtopology_id="1", partitions=[2])],
        warmup_tasks=[described.TaskIds(subtopology_id="1", partitions=[3])],
    )
    members = [
        described.Member(member_id="b", assignment=tasks),
        described.Member(member_id="a", target_assignment=tasks),
    ]
    first, second = group_info(described.DescribedGroup(members=members)).members
    assert (first.member_id, second.member_id) == ("a", "b")
    active = (("0", 2), ("1", 0), ("1", 1))
    assert second.assignment == StreamsTasks(active, (("1", 2),), (("1", 3),))
    assert second.assignment == first.target_assignment
    assert first.assignment == second.target_assignment == StreamsTasks((), (), ())


def test_the_topology_of_a_streams_group() -> None:
    configs = [described.KeyValue(key=key, value="v") for key in ("b", "a")]
    changelog = described.TopicInfo(
        name="c", partitions=2, replication_factor=1, topic_configs=configs
    )
    subtopologies = [
        described.Subtopology(subtopology_id="1", state_changelog_topics=[changelog]),
        described.Subtopology(subtopology_id="0", source_topics=["t", "s"]),
    ]
    topology = described.Topology(epoch=3, subtopologies=subtopologies)
    group = group_info(described.DescribedGroup(topology=topology))
    assert group.topology_epoch == 3
    assert group.subtopologies == (
        Subtopology("0", ("s", "t"), (), (), ()),
        Subtopology("1", (), (), (StreamsTopic("c", 2, 1, (("a", "v"), ("b", "v"))),), ()),
    )
    unready = described.DescribedGroup(topology=described.Topology(epoch=3, subtopologies=None))
    assert group_info(unready).subtopologies == ()
    assert group_info(described.DescribedGroup()).topology_epoch is None


def test_the_graph_of_a_topology_with_what_later_versions_may_have() -> None:
    row = described.DescribedGroup(
        topology_description=described.TopologyDescription(
            subtopologies=[
                described.TopologyDescriptionSubtopology(
                    subtopology_id="0",
                    nodes=[
                        described.TopologyDescriptionNode(name="joins", node_type=9, stores=["s"])
                    ],
                )
            ]
        ),
        topology_description_status=9,
    )
    group = group_info(row)
    joins = TopologyNode("joins", "unknown", (), None, ("s",), ())
    assert group.topology_description == TopologyDescription({"0": (joins,)}, ())
    assert group.topology_description_status is TopologyDescriptionStatus.UNKNOWN


def test_a_broker_before_4_4_gets_no_request_for_the_graph() -> None:
    settings = {"group.streams.initial.rebalance.delay.ms": "0"}
    config = ServerConfig(topics={streams.TOPIC: 2}, settings=settings, release="4.3")
    with ServerThread(config) as server, Admin({"bootstrap.servers": server.bootstrap}) as admin:
        with Wire(server.server.endpoints[0].port) as wire:
            body = {"keyType": 0, "coordinatorKeys": [streams.GROUP]}
            peer = Peer(wire)
            peer.exchange("FindCoordinator", 6, body)
            peer.exchange(streams.HEARTBEAT, 0, streams.beat("m"))
        groups = admin.describe_streams_groups([streams.GROUP], include_topology_description=True)
    status = groups[streams.GROUP].topology_description_status
    assert status is TopologyDescriptionStatus.NOT_REQUESTED


@pytest.mark.parametrize(("member_type", "is_classic"), [(0, True), (1, False), (-1, None)])
def test_the_protocol_of_a_member_of_a_consumer_group(
    member_type: int, is_classic: bool | None
) -> None:
    row = consumers.DescribedGroup(
        members=[
            consumers.Member(
                member_type=member_type,
                subscribed_topic_regex="t.*",
                target_assignment=consumers.Assignment(
                    topic_partitions=[consumers.TopicPartitions(topic_name="t", partitions=[1, 0])]
                ),
            )
        ]
    )
    [member] = consumer_group_info(row).members
    assert member.is_classic is is_classic
    assert member.subscribed_regex == "t.*"
    assert (member.assignment, member.target_assignment) == ((), (("t", 0), ("t", 1)))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\xff"])
def test_a_classic_member_that_wrote_something_else(data: bytes) -> None:
    group = GroupInfo(
        "g", "Stable", "consumer", "p", (MemberInfo("m", None, "c", "h", data, data),)
    )
    [member] = classic_group_info(group).members
    assert (member.subscribed_topics, member.assignment) == ((), ())


def test_a_group_of_a_broker_without_the_new_protocol() -> None:
    with ServerThread(ServerConfig(topics={"orders": 1}, settings=QUICK, release="2.8")) as server:
        here = {"bootstrap.servers": server.bootstrap}
        with Admin(here) as admin, Consumer({**here, "group.id": "g"}) as consumer:
            consumer.subscribe(["orders"])
            while not consumer.assignment():
                consumer.poll(0.1)
            groups = admin.describe_consumer_groups(["g", "none"])
            with pytest.raises(ClientError, match="SHARE_GROUP_DESCRIBE"):
                admin.describe_share_groups(["g"])
    assert list(groups) == ["g", "none"]
    assert (groups["g"].type, groups["g"].group_epoch) == ("classic", None)
    [member] = groups["g"].members
    assert member.assignment == (ORDERS,)
    assert groups["none"].state == "Dead"
