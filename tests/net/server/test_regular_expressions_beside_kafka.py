"""A member of a consumer group with a regular expression, at a real Apache Kafka and at ours.

Both assign it the topics that match and that it may DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkawire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.messages.find_coordinator_response import FindCoordinatorResponse
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from ...real.broker import GUEST, USER, Broker
from ...real.responses import errors
from ...real.wire import Wire
from .test_guards_beside_kafka import CONFIG, Connected, Rule, signed_in

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]

O, R = Operation, AclResource  # noqa: E741


class Cluster(Connected):
    """A cluster with topics whose names begin alike. names: topic id -> name."""

    def __init__(self, admin: Wire, guest: Wire, prefix: str) -> None:
        super().__init__(admin, guest)
        self.prefix = prefix
        self.names: dict[bytes, str] = {}

    def create(self, name: str) -> None:
        """Create a topic with one partition."""
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        creating = CreateTopicsRequest(topics=[topic])
        [created] = self.admin.exchange(creating, 7, CreateTopicsResponse).topics
        assert not created.error_code, created
        self.names[created.topic_id] = name

    def delete_topics(self) -> None:
        """Delete the topics, which another test may create again."""
        topics = [DeleteTopicState(name=name) for name in self.names.values()]
        deleting = DeleteTopicsRequest(topics=topics, timeout_ms=10_000)
        deleted = self.admin.exchange(deleting, 6, DeleteTopicsResponse).responses
        assert not any(each.error_code for each in deleted), deleted


@contextmanager
def connected(port: int, prefix: str) -> Iterator[Cluster]:
    """Connect to a cluster with two new topics, of which the guest may describe one."""
    with signed_in(port, USER) as admin, signed_in(port, GUEST) as guest:
        cluster = Cluster(admin, guest, prefix)
        try:
            cluster.create(f"{prefix}-seen")
            cluster.create(f"{prefix}-hidden")
            finding = FindCoordinatorRequest(key=prefix)
            until(lambda: not errors(admin.exchange(finding, 3, FindCoordinatorResponse)))
            may_describe = Rule(R.TOPIC, O.DESCRIBE, name=f"{prefix}-seen")
            cluster.set_rules([Rule(R.GROUP, O.READ, name=prefix), may_describe])
            yield cluster
        finally:
            cluster.set_rules([])
            cluster.delete_topics()


class Member:
    """A member with an expression. assigned: the names of the topics that it reads."""

    def __init__(self, wire: Wire, cluster: Cluster, member_id: str) -> None:
        self._wire = wire
        self._names = cluster.names
        self._request = ConsumerGroupHeartbeatRequest(
            group_id=cluster.prefix,
            member_id=member_id,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"{cluster.prefix}-.*",
            topic_partitions=[],
        )
        self.assigned: set[str] = set()

    def heartbeat(self) -> int:
        """Send a heartbeat; return the member's epoch."""
        response = self._wire.exchange(self._request, 1, ConsumerGroupHeartbeatResponse)
        assert not response.error_code, response
        self._request.member_epoch = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.assigned = {self._names[each.topic_id] for each in topics}
            self._request.topic_partitions = [
                TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in topics
            ]
        return response.member_epoch

    def is_assigned(self) -> bool:
        """Send a heartbeat; return whether it reads a topic."""
        self.heartbeat()
        return bool(self.assigned)

    def leave(self) -> None:
        """Leave the group."""
        self._request.member_epoch = -1
        self._wire.exchange(self._request, 1, ConsumerGroupHeartbeatResponse)


def test_an_expression_matches_what_its_member_may_describe(kafka: Broker) -> None:
    with ServerThread(CONFIG) as server:
        for port in (kafka.sasl_port, server.server.endpoints[0].port):
            with connected(port, "matched") as cluster:
                for wire, expected in (
                    (cluster.guest, {"matched-seen"}),
                    (cluster.admin, {"matched-seen", "matched-hidden"}),
                ):
                    member = Member(wire, cluster, "m")
                    until(member.is_assigned)
                    assert member.assigned == expected
                    member.leave()


def settle(*members: Member) -> set[str]:
    """Send heartbeats until all members have one epoch; return the topics that they read."""
    until(lambda: len({each.heartbeat() for each in members}) == 1)
    return {topic for each in members for topic in each.assigned}


def test_an_expression_is_looked_up_for_the_member_whose_heartbeat_comes_first(
    kafka: Broker,
) -> None:
    """Members share what it matches, also where they may describe different topics."""
    with ServerThread(CONFIG) as server:
        for port in (kafka.sasl_port, server.server.endpoints[0].port):
            with connected(port, "shared") as cluster:
                guest = Member(cluster.guest, cluster, "guest")
                until(guest.is_assigned)
                admin = Member(cluster.admin, cluster, "admin")
                assert settle(guest, admin) == {"shared-seen"}
                cluster.create("shared-new")
                until(admin.is_assigned)
                assert settle(guest, admin) == {"shared-seen", "shared-hidden", "shared-new"}
                guest.leave()
                admin.leave()
