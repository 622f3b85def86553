"""Nodes that replicate, elect and fail: the fixture `kafka_cluster`, with several clients."""

from __future__ import annotations

import pytest

from kafkawire.broker.groups.coordinators import partition_for
from kafkawire.broker.topics import OFFSETS_TOPIC
from kafkawire.net.nodes.cluster_thread import ClusterThread
from tests.interop.implementations import IMPLEMENTATIONS, Implementation, until
from tests.interop.implementations.ours import Ours

from .test_produce_and_consume import all_seen, values

OFFSETS_PARTITIONS = 3
CLIENTS = (Ours(), *IMPLEMENTATIONS)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=CLIENTS, ids=lambda make: make.name)
def make(request: pytest.FixtureRequest) -> Implementation:
    """A client implementation."""
    found: Implementation = request.param
    return found


def test_what_was_acknowledged_outlives_its_leader(
    kafka_cluster: ClusterThread, make: Implementation
) -> None:
    first, second = values(50, "first"), values(50, "second")
    make.produce(kafka_cluster.bootstrap, "t", first)
    member = make.member(kafka_cluster.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], len(first)))
    leader = kafka_cluster.leader("t")
    kafka_cluster.kill(leader)
    assert kafka_cluster.leader("t") != leader
    make.produce(kafka_cluster.bootstrap, "t", second)
    member.until(lambda: all_seen([member], len(first) + len(second)))
    member.leave()
    assert [each.value for each in member.seen] == first + second
    kafka_cluster.start(leader)
    kafka_cluster.wait(lambda: kafka_cluster.isr("t") == [1, 2, 3])


@pytest.mark.kafka_cluster(brokers=1)
def test_a_group_continues_where_it_was_when_its_coordinator_is_back(
    kafka_cluster: ClusterThread, make: Implementation
) -> None:
    make.produce(kafka_cluster.bootstrap, "t", values(20, "first"))
    member = make.member(kafka_cluster.bootstrap, "t", "g")
    member.until(lambda: all_seen([member], 20))
    member.leave()
    kafka_cluster.kill(1)
    kafka_cluster.start(1)
    make.produce(kafka_cluster.bootstrap, "t", values(20, "second"))
    again = make.member(kafka_cluster.bootstrap, "t", "g")
    again.until(lambda: all_seen([again], 20))
    again.leave()
    assert [each.value for each in again.seen] == values(20, "second")


@pytest.fixture
def one() -> Implementation:
    """One implementation, where it does not matter which."""
    return IMPLEMENTATIONS[0]


def test_a_node_that_stops_in_order_gives_its_partitions_away_first(
    kafka_cluster: ClusterThread, one: Implementation
) -> None:
    one.produce(kafka_cluster.bootstrap, "t", values(1))
    leader = kafka_cluster.leader("t")
    kafka_cluster.stop(leader)
    assert leader not in kafka_cluster.nodes
    assert kafka_cluster.leader("t") != leader
    assert leader not in kafka_cluster.isr("t")


def test_an_isolated_leader_is_replaced_and_loses_what_it_could_not_replicate(
    kafka_cluster: ClusterThread, one: Implementation
) -> None:
    bootstrap = kafka_cluster.bootstrap
    one.produce(bootstrap, "t", values(10, "before"))
    leader = kafka_cluster.leader("t")
    kafka_cluster.isolate(leader)
    until(lambda: kafka_cluster.leader("t") != leader)
    assert leader not in kafka_cluster.isr("t")
    kafka_cluster.heal()
    kafka_cluster.wait(lambda: len(kafka_cluster.isr("t")) == 3)
    one.produce(bootstrap, "t", values(10, "after"))
    member = one.member(bootstrap, "t", "g")
    member.until(lambda: all_seen([member], 20))
    member.leave()
    assert [each.value for each in member.seen] == values(10, "before") + values(10, "after")


def test_a_group_survives_its_coordinator(
    kafka_cluster: ClusterThread, one: Implementation
) -> None:
    bootstrap = kafka_cluster.bootstrap
    one.produce(bootstrap, "t", values(20, "before"))
    member = one.member(bootstrap, "t", "g")
    member.until(lambda: all_seen([member], 20))
    member.leave()
    partition = partition_for("g", OFFSETS_PARTITIONS)
    kafka_cluster.wait(lambda: len(kafka_cluster.isr(OFFSETS_TOPIC, partition)) == 3)
    kafka_cluster.kill(kafka_cluster.leader(OFFSETS_TOPIC, partition))
    one.produce(bootstrap, "t", values(20, "after"))
    again = one.member(bootstrap, "t", "g")
    again.until(lambda: all_seen([again], 20))
    again.leave()
    assert [each.value for each in again.seen] == values(20, "after")


@pytest.mark.kafka_cluster(settings={"replica.lag.time.max.ms": "30000"})
def test_a_dead_replica_leaves_the_isr_when_the_clock_is_advanced(
    kafka_cluster: ClusterThread, one: Implementation
) -> None:
    one.produce(kafka_cluster.bootstrap, "t", values(1))
    follower = next(each for each in kafka_cluster.nodes if each != kafka_cluster.leader("t"))
    kafka_cluster.kill(follower)
    kafka_cluster.advance(10.0)
    kafka_cluster.wait(lambda: follower not in kafka_cluster.isr("t"))
