"""Groups of real clients survive their coordinator, and the whole cluster."""

from __future__ import annotations

import pytest

from kafkawire.messages.heartbeat_response import HeartbeatResponse
from kafkawire.messages.join_group_response import JoinGroupResponse
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import IMPLEMENTATIONS, Implementation, until
from tests.real.broker import free_ports

from .test_produce_and_consume import all_seen, values

pytestmark = pytest.mark.timeout(600)
OFFSETS = "__consumer_offsets"
ONE = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


def beats(server: ServerThread, node_id: int) -> bool:
    """Whether a broker has taken a member's heartbeat."""
    return any(
        isinstance(each.response, HeartbeatResponse)
        and not each.response.error_code
        and each.request.node_id == node_id
        for each in list(server.requests)
    )


def joins(server: ServerThread) -> int:
    """Count the joins whose response had a generation."""
    return sum(
        isinstance(each.response, JoinGroupResponse) and not each.response.error_code
        for each in list(server.requests)
    )


@pytest.mark.kafka(brokers=3, topics={"t": 2}, settings=ONE)
def test_a_group_goes_on_where_its_coordinator_is_now(
    kafka_broker: ServerThread, make: Implementation
) -> None:
    bootstrap = kafka_broker.bootstrap
    make.produce(bootstrap, "t", values(20))
    member = make.member(bootstrap, "t", "g")
    member.until(lambda: all_seen([member], 20))
    joined = joins(kafka_broker)
    other = kafka_broker.leader(OFFSETS) % 3 + 1
    kafka_broker.move_leader(OFFSETS, 0, other)
    member.until(lambda: beats(kafka_broker, other))
    make.produce(bootstrap, "t", values(20, "moved"))
    member.until(lambda: all_seen([member], 40))
    member.leave()
    assert len(member.seen) == 40, "nothing is read again"
    assert joins(kafka_broker) == joined, "the group is the same, with the same members"


# kafka-python forgets sockets that it was connecting with when the broker is down
@pytest.mark.parametrize(
    "make",
    [each for each in IMPLEMENTATIONS if each.name != "kafka-python"],
    ids=lambda each: each.name,
)
def test_a_group_goes_on_in_a_cluster_that_is_built_again(make: Implementation) -> None:
    config = ServerConfig(topics={"t": 2}, settings=ONE, ports=free_ports(1))
    with ServerThread(config) as first:
        make.produce(first.bootstrap, "t", values(20))
        leaving = make.member(first.bootstrap, "t", "g")
        leaving.until(lambda: all_seen([leaving], 20))
        leaving.leave()
        stays = make.member(first.bootstrap, "t", "g")
        until(lambda: len(stays.assigned) == 2)
    with ServerThread(config, persisted=first.persisted) as second:
        stays.until(lambda: beats(second, 1))
        make.produce(second.bootstrap, "t", values(20, "later"), idempotent=True)
        stays.until(lambda: all_seen([stays], 20))
        stays.leave()
        assert sorted(each.value or b"" for each in stays.seen) == sorted(values(20, "later"))
        assert joins(second) == 0, "the member is known, and stays"
