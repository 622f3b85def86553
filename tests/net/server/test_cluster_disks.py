"""Disks of `kafka_cluster` that are slow, full or fail, while clients go on; its invariants."""

from __future__ import annotations

import time

import pytest

from kafkawire.metadata import MetadataImage, TopicIdPartition
from kafkawire.net.nodes.cluster_thread import ClusterThread
from kafkawire.net.nodes.invariants import ClusterInvariants
from kafkawire.node.invariants import Invariants, Replica, Violation
from kafkawire.raft import LeaderChanged
from kafkawire.replication import MemoryLog, ReplicaChanged, ReplicaState, whole_batches
from tests.interop.implementations import IMPLEMENTATIONS, Implementation
from tests.node.clients import batch

from .test_produce_and_consume import all_seen, values

TOPIC = "t"
TWO_EACH = pytest.mark.kafka_cluster(directories=2, settings={"num.partitions": "2"})
KEY = TopicIdPartition(b"sixteen bytes id", 0)
SLOW = 0.05
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def client() -> Implementation:
    """librdkafka."""
    return next(each for each in IMPLEMENTATIONS if each.name == "confluent-kafka")


def led_from(cluster: ClusterThread, directory: str) -> tuple[int, int]:
    """Return a partition that is led from a directory, and its leader."""
    for partition in (0, 1):
        leader = cluster.leader(TOPIC, partition)
        if cluster.directory(TOPIC, leader, partition) == directory:
            return partition, leader
    raise AssertionError(f"nothing is led from {directory}")


@TWO_EACH
def test_clients_go_on_while_disks_are_slow_fail_and_are_full(
    kafka_cluster: ClusterThread, client: Implementation
) -> None:
    cluster, bootstrap = kafka_cluster, kafka_cluster.bootstrap
    sent = values(20, "first")
    client.produce(bootstrap, TOPIC, sent)
    member = client.member(bootstrap, TOPIC, "g")
    member.until(lambda: all_seen([member], len(sent)))

    def go_on(prefix: str) -> None:
        """Produce more, and wait until it is consumed."""
        more = values(20, prefix)
        client.produce(bootstrap, TOPIC, more)
        sent.extend(more)
        member.until(lambda: all_seen([member], len(sent)))
        cluster.invariants()

    partition, leader = led_from(cluster, "disk-2")
    cluster.slow_disk(leader, SLOW)
    go_on("slow")
    cluster.repair_disks(leader)
    cluster.fail_disk(leader, "disk-2")
    go_on("failed")
    cluster.wait(lambda: leader not in cluster.isr(TOPIC, partition))
    assert cluster.offline_directories(leader) == {"disk-2": "Input/output error"}
    assert leader in cluster.isr(TOPIC, 1 - partition)
    cluster.repair_disks(leader)
    cluster.kill(leader)
    cluster.start(leader)
    cluster.wait(lambda: cluster.isr(TOPIC, partition) == [1, 2, 3])
    full = cluster.leader(TOPIC, partition)
    cluster.full_disk(full)
    go_on("full")
    cluster.wait(lambda: full not in cluster.nodes)
    cluster.repair_disks(full)
    cluster.start(full)
    cluster.wait(lambda: cluster.isr(TOPIC, partition) == [1, 2, 3])
    go_on("last")
    member.leave()
    assert sorted(each.value or b"" for each in member.seen) == sorted(sent)


@pytest.mark.kafka_cluster(brokers=1)
def test_a_response_takes_the_time_of_a_slow_disk(
    kafka_cluster: ClusterThread, client: Implementation
) -> None:
    client.produce(kafka_cluster.bootstrap, TOPIC, values(1))
    kafka_cluster.slow_disk(1, 0.4)
    started = time.monotonic()
    client.produce(kafka_cluster.bootstrap, TOPIC, values(1))
    assert time.monotonic() - started >= 0.4
    kafka_cluster.repair_disks(1)
    with pytest.raises(ValueError, match="node 1 has no directory 'disk-9': disk-1"):
        kafka_cluster.fail_disk(1, "disk-9")


# -- invariants


@pytest.mark.kafka_cluster(brokers=1)
def test_a_record_that_was_acknowledged_and_is_lost_is_a_violation(
    kafka_cluster: ClusterThread, client: Implementation
) -> None:
    client.produce(kafka_cluster.bootstrap, TOPIC, values(3))
    kafka_cluster.invariants()
    front = kafka_cluster.server.machine.front(1)
    [replica] = front.machines.node.partitions.values()
    kafka_cluster._thread.call(lambda: replica.log.truncate_to(0))
    with pytest.raises(AssertionError, match=r"t-0: leader 1 ends at 0, acknowledged is offset 0"):
        kafka_cluster.invariants()


def test_two_leaders_of_an_epoch_are_a_violation() -> None:
    found = ClusterInvariants()
    for node_id in (1, 2):
        found.observe(node_id, ReplicaChanged(KEY, ReplicaState.LEADER, 5))
    with pytest.raises(Violation, match="brokers 1 and 2 lead 0 in epoch 5"):
        found.check([], MetadataImage())


def test_two_leaders_of_the_quorum_are_a_violation() -> None:
    found = ClusterInvariants()
    for leader in (1, 2):
        found.observe(3, LeaderChanged(leader, 7))
    with pytest.raises(Violation, match="nodes 1 and 2 lead the quorum in epoch 7"):
        found.check([], MetadataImage())


def test_replicas_that_differ_below_the_high_watermark_are_a_violation() -> None:
    ours, theirs = MemoryLog(), MemoryLog()
    for log, value in ((ours, b"x"), (theirs, b"y")):
        log.append_as_leader(whole_batches(batch([value])), 0)
    found = Invariants()
    found.agree(KEY, ours, Replica(2, 1, theirs))
    ours.update_high_watermark(1)
    with pytest.raises(Violation, match="broker 2 in the ISR has b'y' at 0 of 0, the leader b'x'"):
        found.agree(KEY, ours, Replica(2, 1, theirs))


def test_metadata_that_differs_is_a_violation() -> None:
    found = Invariants()
    found.metadata(1, batch([b"x"]), 1)
    found.metadata(2, batch([b"x"]), 1)
    with pytest.raises(Violation, match="node 3 has other metadata at 0"):
        found.metadata(3, batch([b"y"]), 1)
