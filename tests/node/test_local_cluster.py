"""Several nodes in one process: their disks, their links, and requests of the operator."""

from __future__ import annotations

import random

import pytest

import kafkawire
from kafkawire import UnsupportedVersion
from kafkawire.broker import Endpoint, Received
from kafkawire.broker.bounds import SLICE_REQUESTS
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.leader_and_isr_request import LeaderAndIsrRequest
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.metadata import PartitionRegistration
from kafkawire.node import Stopped
from kafkawire.node.composition import InMemory
from kafkawire.node.links import LinkCarried, LinkClosed, LinkOpened
from kafkawire.node.local_cluster import Isolated, Killed, LocalCluster, NodeEffect
from kafkawire.node.operator_requests import OperatorRequest, OperatorResponse
from kafkawire.protocol import ErrorCode

from ..broker.harness import Harness
from .clients import PRODUCE_VERSION, produce

SLOW = 0.5


def registration(harness: Harness) -> PartitionRegistration:
    """Return the only partition, as the brokers that are not isolated know it."""
    [(_, _, partition)] = harness.image.partitions()
    return partition


def quorum_leader(harness: Harness) -> int | None:
    """Return the active controller, as the brokers that run know it."""
    for node_id, front in harness.cluster.fronts.items():
        if front.machines.node.parts.active_controller is not None:
            return node_id
    return None


# -- time


@pytest.mark.parametrize(("brokers", "combined"), [(1, False), (2, False), (3, True)])
def test_brokers_keep_their_sessions_however_late_their_heartbeats(
    brokers: int, combined: bool
) -> None:
    """Their process did not run for 1.5 sessions; one has requests queued, and leads."""
    harness = Harness(brokers, {"t": 1}, combined=combined)
    leader, cluster, before = harness.leader_of("t"), harness.cluster, registration(harness)
    client, other = harness.client(leader), harness.client(leader)
    one = kafkawire.encode_frame(MetadataRequest(topics=[]), 9, 1)
    cluster.handle(Received(client.number, one * 10 * SLICE_REQUESTS), harness.now)
    late = harness.now + 1.5 * harness.front().config.session_timeout
    cluster.handle(Received(other.number, one), late)
    due = cluster.next_deadline()
    while due is not None and due <= late:
        cluster.advance(late)
        due = cluster.next_deadline()
    assert registration(harness) == before, "the leader was not fenced"


# -- disks


def test_a_response_waits_for_a_slow_disk_and_what_came_meanwhile_for_that() -> None:
    harness = Harness(2, {"t": 1})
    leader = harness.leader_of("t")
    slow, other = harness.client(leader), harness.client(3 - leader)
    harness.cluster.nodes[leader].slow(SLOW)
    began = harness.now
    slow.send(produce("t", 0, b"x", acks=1), PRODUCE_VERSION)
    later = harness.client(leader)
    later.send(MetadataRequest(topics=None), 9)
    other.send(MetadataRequest(topics=None), 9)
    assert other.response() is not None, "other nodes go on"
    assert slow.response() is None
    assert later.response() is None
    harness.wait(lambda: not later.is_waiting())
    assert harness.now >= began + SLOW
    assert isinstance(slow.response(), ProduceResponse)
    assert isinstance(later.response(), MetadataResponse)


def test_a_node_that_is_killed_while_its_disk_is_slow_responds_nothing() -> None:
    harness = Harness(1, {"t": 1})
    client = harness.client()
    harness.cluster.nodes[1].slow(SLOW)
    client.send(produce("t", 0, b"x", acks=1), PRODUCE_VERSION)
    harness.handle(Killed(1))
    assert client.closed is not None
    harness.start_broker(1)
    harness.advance(2 * SLOW)
    assert client.response() is None


def test_a_client_that_leaves_while_the_disk_is_slow_gets_nothing() -> None:
    harness = Harness(1, {"t": 1})
    client = harness.client()
    harness.cluster.nodes[1].slow(SLOW)
    client.send(produce("t", 0, b"x", acks=1), PRODUCE_VERSION)
    client.disconnect()
    harness.advance(2 * SLOW)
    assert client.response() is None
    assert harness.replica("t").log.log_end_offset == 1
    assert not harness.server().connections


@pytest.mark.parametrize("wrong", ["fail", "fill"])
def test_a_node_stops_when_its_first_disk_fails_and_starts_once_it_is_repaired(wrong: str) -> None:
    harness = Harness(2, {"t": 1})
    leader = harness.leader_of("t")
    node = harness.cluster.nodes[leader]
    client = harness.client(leader)
    getattr(node, wrong)()
    client.send(produce("t", 0, b"x", acks=1), PRODUCE_VERSION)
    harness.wait(lambda: client.closed is not None)
    assert leader not in harness.cluster.running
    [stopped] = [
        each.effect
        for each in harness.effects
        if isinstance(each, NodeEffect) and isinstance(each.effect, Stopped)
    ]
    assert stopped.failure in ("Input/output error", "No space left on device", client.closed)
    node.repair()
    harness.start_broker(leader)
    assert node.starts == 2


def test_a_directory_that_a_node_does_not_have_is_named() -> None:
    node = Harness().cluster.nodes[1]
    with pytest.raises(ValueError, match="node 1 has no directory 'disk-9': disk-1"):
        node.slow(1.0, "disk-9")


# -- links


def test_an_isolated_leader_is_replaced_and_follows_when_the_network_is_whole_again() -> None:
    harness = Harness(3, combined=True)
    harness.create_topic("t", factor=3)
    leader = harness.leader_of("t")
    harness.handle(Isolated(frozenset({leader})))
    harness.wait(lambda: registration(harness).leader not in (leader, -1))
    assert leader not in registration(harness).isr
    harness.handle(Isolated(frozenset()))
    harness.wait(lambda: leader in registration(harness).isr)


def test_combined_nodes_elect_another_controller_when_theirs_is_killed() -> None:
    harness = Harness(3, combined=True)
    first = quorum_leader(harness)
    assert first is not None
    voters = harness.front().machines.node.parts.raft.client.voters
    assert {each.key.id for each in voters.voters} == {1, 2, 3}
    harness.handle(Killed(first))
    harness.wait(lambda: quorum_leader(harness) is not None)
    assert quorum_leader(harness) != first


def observed(brokers: int) -> tuple[LocalCluster, list[object]]:
    """Start a cluster whose links are observed; return what they carried."""
    rng = random.Random(1)
    endpoints = [Endpoint(node, "broker", 9090 + node) for node in range(1, brokers + 1)]
    cluster = LocalCluster(
        InMemory(endpoints, 0, cluster_id="observed").nodes(),
        rng,
        lambda: rng.randbytes(16),
        observes_links=True,
    )
    return cluster, [*cluster.start(0.0)]


def test_links_are_observed_from_end_to_end() -> None:
    cluster, effects = observed(2)
    effects += cluster.handle(Killed(2), 0.0)
    opened = [each for each in effects if isinstance(each, LinkOpened)]
    closed = {each.number for each in effects if isinstance(each, LinkClosed)}
    assert {each.address for each in opened} == {("controller", 9093)}
    assert len(closed) == len(opened) // 2
    for number in (each.number for each in opened):
        carried = [
            each for each in effects if isinstance(each, LinkCarried) and each.number == number
        ]
        assert [each.to_server for each in carried[:2]] == [True, False]
        assert kafkawire.decode_frame(carried[0].data).api_key == kafkawire.ApiKey.API_VERSIONS


# -- requests of the operator


def create(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def responses(harness: Harness) -> list[OperatorResponse]:
    return [each for each in harness.effects if isinstance(each, OperatorResponse)]


def test_requests_of_the_operator_reach_an_elected_controller() -> None:
    harness = Harness(3, combined=True)
    for number, name in enumerate(("a", "b", "b"), 1):
        harness.handle(OperatorRequest(number, create(name)))
        harness.wait(lambda: len(responses(harness)) == number)  # noqa: B023
    bodies = [each.body for each in responses(harness)]
    errors = [
        each.topics[0].error_code for each in bodies if isinstance(each, CreateTopicsResponse)
    ]
    assert errors == [0, 0, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert not harness.server().connections, "theirs are closed"


def test_a_request_of_the_operator_ends_with_its_broker() -> None:
    harness = Harness(1)
    harness.cluster.nodes[1].slow(SLOW)
    harness.handle(OperatorRequest(1, create("a")))
    harness.handle(Killed(1))
    harness.handle(OperatorRequest(2, create("a")))
    assert responses(harness) == [OperatorResponse(1, None), OperatorResponse(2, None)]


def test_a_request_that_brokers_do_not_offer_is_refused() -> None:
    harness = Harness()
    with pytest.raises(UnsupportedVersion, match="brokers do not offer LEADER_AND_ISR"):
        harness.handle(OperatorRequest(1, LeaderAndIsrRequest()))


def test_operators_use_the_newest_versions_at_brokers_that_emulate_a_release() -> None:
    harness = Harness(release="2.2")
    harness.handle(OperatorRequest(1, AlterPartitionReassignmentsRequest()))
    [response] = responses(harness)
    assert isinstance(response.body, AlterPartitionReassignmentsResponse)
