"""Groups as `Admin` describes them, the same at a real Apache Kafka and at our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kafkawire.blocking import Admin, Consumer
from kafkawire.client.failures import BrokerError
from kafkawire.net.admin import (
    ConsumerGroupInfo,
    ConsumerMemberInfo,
    ShareGroupInfo,
    ShareMemberInfo,
    StreamsGroupInfo,
    StreamsTasks,
)
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.real.java import RELEASE

from ...interop.implementations import until
from ...real.broker import Broker
from ...real.wire import CLIENT_ID, Wire
from . import test_beside_kafka as beside
from . import test_shares_beside_kafka as shares
from . import test_streams_beside_kafka as streams
from .test_beside_kafka import Fields
from .test_shares_beside_kafka import SETTINGS, Peer, config, create_topic, settled_consumer

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

HOST: Final = "/127.0.0.1"
"""A member's, as Kafka writes it."""


@pytest.fixture(scope="module")
def both(own_kafka: Broker) -> Iterator[tuple[int, int]]:
    """Ports of Kafka and of ours."""
    with ServerThread(ServerConfig(settings=SETTINGS, release=RELEASE)) as server:
        yield own_kafka.port, server.server.endpoints[0].port


def admin_of(port: int) -> Admin:
    return Admin({"bootstrap.servers": f"127.0.0.1:{port}"})


def is_none(describe: Callable[[list[str]], object], *group_ids: str) -> None:
    with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*absent"):
        describe(list(group_ids))


def test_share_groups(both: tuple[int, int]) -> None:
    """Two members share a partition, until one leaves."""

    def described(port: int) -> list[ShareGroupInfo]:
        with Wire(port) as wire, admin_of(port) as admin:
            peer = Peer(wire)
            create_topic(peer, shares.TOPIC, shares.GROUP, partitions=1)
            epochs = {member: shares.settled_member(peer, member) for member in ("n", "m")}
            first = admin.describe_share_groups([shares.GROUP])
            peer.exchange("ShareGroupHeartbeat", 1, shares.beat("n", -1))
            second = admin.describe_share_groups([shares.GROUP])
            is_none(admin.describe_share_groups, shares.GROUP, "absent")
            assert epochs["m"] == first[shares.GROUP].group_epoch
            return [groups[shares.GROUP] for groups in (first, second)]

    theirs, ours = map(described, both)
    assert ours == theirs
    together, alone = ours
    assert together.state == "Stable"
    assert [member.member_id for member in together.members] == ["m", "n"]
    [member] = alone.members
    assert together.members[0] == member
    assert member == ShareMemberInfo(
        "m", None, together.group_epoch, CLIENT_ID, HOST, (shares.TOPIC,), ((shares.TOPIC, 0),)
    )
    assert alone.group_epoch > together.group_epoch == together.assignment_epoch > 0


def test_streams_groups(both: tuple[int, int]) -> None:
    """A member with all tasks, and one that waits for half of them."""

    def described(port: int) -> list[StreamsGroupInfo]:
        with Wire(port) as wire, admin_of(port) as admin:
            peer = Peer(wire)
            create_topic(peer, streams.TOPIC, streams.GROUP)
            for key in ("initial.rebalance.delay.ms", "assignment.interval.ms"):
                change = config(f"streams.{key}", "0", streams.GROUP)
                peer.exchange("IncrementalAlterConfigs", 1, change)
            about: Fields = {
                "userEndpoint": {"host": "there", "port": 8080},
                "clientTags": [{"key": "zone", "value": "z1"}],
            }
            joined: Any = peer.exchange(streams.HEARTBEAT, 1, streams.beat("m", **about))
            epoch = streams.settled_member(peer, "m", joined.member_epoch)
            task = {"subtopologyId": "1", "partition": 0}
            goes_on: Fields = {
                "activeTasks": streams.ALL_TASKS,
                "standbyTasks": [],
                "warmupTasks": [],
                "taskOffsets": [task | {"offset": 5}],
                "taskEndOffsets": [task | {"offset": 7}],
            }
            peer.exchange(streams.HEARTBEAT, 1, streams.beat("m", epoch, **goes_on))
            first = admin.describe_streams_groups([streams.GROUP])
            peer.exchange(streams.HEARTBEAT, 1, streams.beat("n", instanceId="i"))
            second = admin.describe_streams_groups([streams.GROUP])
            is_none(admin.describe_streams_groups, streams.GROUP, "absent")
            return [groups[streams.GROUP] for groups in (first, second)]

    theirs, ours = map(described, both)
    assert ours == theirs
    alone, together = ours
    assert (alone.state, alone.topology_epoch) == ("Stable", 0)
    repartitioning, counting = alone.subtopologies
    repartition = f"{streams.GROUP}-repartition"
    assert repartitioning.source_topics == (streams.TOPIC,)
    assert repartitioning.repartition_sink_topics == (repartition,)
    assert [topic[:3] for topic in counting.repartition_source_topics] == [(repartition, 2, 0)]
    [member] = alone.members
    assert (member.client_id, member.client_host) == (CLIENT_ID, HOST)
    assert member.process_id == "process of m"
    assert (member.user_endpoint, member.client_tags) == (("there", 8080), (("zone", "z1"),))
    assert member.task_offsets == {("1", 0): 5}
    assert member.task_end_offsets == {("1", 0): 7}
    everything = tuple((subtopology, partition) for subtopology in "01" for partition in (0, 1))
    assert member.assignment == member.target_assignment == StreamsTasks(everything, (), ())
    m, n = together.members
    assert (n.group_instance_id, m.group_instance_id) == ("i", None)
    assert m.assignment.active == everything
    assert n.assignment.active == ()
    assert len(m.target_assignment.active) == len(n.target_assignment.active) == 2
    assert together.group_epoch > alone.group_epoch


def test_consumer_groups(both: tuple[int, int]) -> None:
    """A member of each protocol; the classic one reads all topics that it subscribes to."""

    def described(port: int) -> list[ConsumerGroupInfo]:
        with Wire(port) as wire, admin_of(port) as admin:
            peer = Peer(wire)
            create_topic(peer, beside.TOPIC, "new")
            settled_consumer(peer, "new", beside.TOPIC, instanceId="i", rackId="r")
            here = {"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "reader"}
            with Consumer({**here, "group.id": "old", "group.protocol": "classic"}) as reader:
                reader.subscribe([beside.TOPIC])
                reader.poll(0.1)
                until(lambda: len(reader.assignment()) == 2)
                groups = admin.describe_consumer_groups(["new", "old"])
            is_none(admin.describe_consumer_groups, "new", "absent")
            connect = beside.joining(kind="connect") | {"groupId": "workers"}
            peer.exchange("JoinGroup", 3, connect)
            with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*workers.*'connect'"):
                admin.describe_consumer_groups(["workers"])
            return list(groups.values())

    theirs, ours = map(described, both)
    new, old = ours
    assert new == theirs[0]
    partitions = ((beside.TOPIC, 0), (beside.TOPIC, 1))
    topics = (beside.TOPIC,)
    assert new.members == (
        ConsumerMemberInfo("a", "i", "r", new.group_epoch, CLIENT_ID, HOST, topics, None,
                           partitions, partitions, False),
    )  # fmt: skip
    assert (new.type, new.state, new.assignor) == ("consumer", "Stable", "uniform")
    assert new.group_epoch == new.assignment_epoch is not None
    for group in (old, theirs[1]):
        [member] = group.members
        assert member.member_id.startswith("reader-")
        assert group == ConsumerGroupInfo("old", "classic", "Stable", None, None, "range", (
            ConsumerMemberInfo(member.member_id, None, None, None, "reader", HOST, topics, None,
                               partitions, None, True),
        ))  # fmt: skip
