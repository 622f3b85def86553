"""A replica of ours follows a real Kafka, leads, and follows again.

What ours fetched equals the file that Kafka wrote, byte for byte; the high watermark is
Kafka's; what ours appended as a leader and Kafka never had is truncated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from kafkawire.configs.features import NEWEST
from kafkawire.controller import MetadataImage
from kafkawire.controller.state import supported_features
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import ListOffsetsResponse
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.records import BatchBuilder, Compression

from .broker import CLUSTER_ID, NODE_ID, Broker, free_ports
from .java import Installation
from .metadata import loaded
from .replication_node import SECONDS, ReplicationNode
from .wire import HOST, Wire

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("replication")]

OURS: Final = 2
TOPIC: Final = "replicated"
PATIENT: Final = "broker.session.timeout.ms=1800000\nreplica.lag.time.max.ms=1800000\n"
ALL: Final = -1


@pytest.fixture(scope="module")
def leader(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A broker that keeps replicas in its ISR however slow they are."""
    port, sasl_port, controller_port = free_ports(3)
    directory = tmp_path_factory.mktemp("leader")
    broker = Broker(installation, directory, port, sasl_port, controller_port)
    broker.format()
    with (broker.directory / "server.properties").open("a") as file:
        file.write(PATIENT)
    try:
        broker.start()
        yield broker
    finally:
        if broker.process is not None:  # in order it would wait for broker 2 to read the metadata
            broker.process.kill()
        broker.stop()


class Cluster:
    """The real broker and its controller, as an administrator and broker 2 see them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.epoch = self._register()

    @property
    def image(self) -> MetadataImage:
        return loaded(self.broker).image

    def leads(self, broker_id: int) -> bool:
        """Whether that broker leads the partition, as the metadata says."""
        return self.partition[0] == broker_id

    @property
    def partition(self) -> tuple[int, set[int]]:
        """The leader and the ISR."""
        found = self.image.topics[self.image.topic_ids[TOPIC]].partitions[0]
        return found.leader, set(found.isr)

    def _register(self) -> int:
        """Register broker 2, and unfence it."""
        levels = {"kraft.version": (0, 1), **supported_features(NEWEST)}
        request = BrokerRegistrationRequest(
            broker_id=OURS,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes(range(16)),
            listeners=[Listener(name="CLIENTS", host=HOST, port=1, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in levels.items()
            ],
            log_dirs=[b"a directory ours"],
        )
        with Wire(self.broker.controller_port) as wire:
            response = wire.exchange(request, 4, BrokerRegistrationResponse)
        assert response.error_code == 0
        self.epoch = response.broker_epoch
        self.heartbeat(fence=False)
        return self.epoch

    def heartbeat(self, *, fence: bool) -> None:
        """Let the controller fence or unfence broker 2."""
        request = BrokerHeartbeatRequest(
            broker_id=OURS,
            broker_epoch=self.epoch,
            current_metadata_offset=self.epoch,
            want_fence=fence,
        )
        with Wire(self.broker.controller_port) as wire:
            response = wire.exchange(request, 1, BrokerHeartbeatResponse)
        assert (response.error_code, response.is_fenced) == (0, fence)

    def create(self, *replicas: int) -> None:
        """Create the topic, with one partition on these brokers."""
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
        topic = CreatableTopic(
            name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[assignment]
        )
        with Wire(self.broker.port) as wire:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            [result] = wire.exchange(request, 7, CreateTopicsResponse).topics
        assert result.error_code == 0, result.error_message

    def prefer(self, *replicas: int) -> None:
        """Put the replicas into another order, and elect the first."""
        partition = ReassignablePartition(partition_index=0, replicas=list(replicas))
        reassignment = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=TOPIC, partitions=[partition])]
        )
        election = ElectLeadersRequest(
            election_type=0, topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])]
        )
        with Wire(self.broker.port) as wire:
            reassigned = wire.exchange(reassignment, 0, AlterPartitionReassignmentsResponse)
            assert reassigned.responses[0].partitions[0].error_code == 0
            elected = wire.exchange(election, 2, ElectLeadersResponse)
        assert elected.replica_election_results[0].partition_result[0].error_code == 0

    def produce(self, records: bytes, acks: int = 1) -> int:
        """Send a batch to the real broker; return the error code."""
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=TOPIC, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=int(SECONDS * 1000), topic_data=[topic])
        with Wire(self.broker.port, seconds=SECONDS) as wire:
            response = wire.exchange(request, 9, ProduceResponse)
        return response.responses[0].partition_responses[0].error_code

    def produce_once_it_leads(self, records: bytes) -> None:
        """Send a batch, again as long as the broker does not know that it leads."""
        wait(lambda: self.produce(records) == 0, "the real broker leads")

    @property
    def high_watermark(self) -> int:
        """The high watermark, as the real broker says."""
        row = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = [ListOffsetsTopic(name=TOPIC, partitions=[row])]
        with Wire(self.broker.port) as wire:
            request = ListOffsetsRequest(replica_id=-1, topics=topics)
            response = wire.exchange(request, 7, ListOffsetsResponse)
        return response.topics[0].partitions[0].offset

    @property
    def stored(self) -> bytes:
        """The file of the real broker's log."""
        return (self.broker.data / f"{TOPIC}-0" / f"{0:020}.log").read_bytes()


def wait(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}"
        time.sleep(0.05)


def batch(*values: bytes, compression: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(compression=compression)
    for value in values:
        builder.append(b"key", value, 1_700_000_000_000)
    return builder.build()


def content(node: ReplicationNode) -> bytes:
    return node.log.read(0, 1 << 30, node.log.log_end_offset, at_least_one=True)


def test_ours_follows_leads_and_is_truncated(leader: Broker) -> None:
    cluster = Cluster(leader)
    cluster.create(NODE_ID, OURS)
    node = ReplicationNode(OURS, cluster.epoch, {NODE_ID: leader.port})
    try:
        node.publish(cluster.image)
        followed(cluster, node)
        led(cluster, node)
        truncated(cluster, node)
    finally:
        node.close()


def followed(cluster: Cluster, node: ReplicationNode) -> None:
    """Ours has what Kafka has; Kafka waits for it before it acknowledges with acks=all."""
    cluster.produce_once_it_leads(batch(b"one", b"two"))
    for compression in Compression:
        assert cluster.produce(batch(*[b"value" * 50] * 20, compression=compression)) == 0
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(cluster.produce, batch(b"acknowledged"), ALL)
        node.run_until(future.done, "acks=all")
        assert future.result() == 0
    agreed(cluster, node)
    assert cluster.partition == (NODE_ID, {NODE_ID, OURS})
    assert node.log.log_end_offset == 2 + 20 * len(Compression) + 1


def agreed(cluster: Cluster, node: ReplicationNode) -> None:
    """The logs are the same bytes, and so are the high watermarks."""
    node.run_until(
        lambda: node.log.high_watermark == cluster.high_watermark == node.log.log_end_offset,
        "the high watermark of the leader",
    )
    assert content(node) == cluster.stored


def led(cluster: Cluster, node: ReplicationNode) -> None:
    """Ours is elected, and appends what nobody fetches; then it is fenced."""
    before = node.log.log_end_offset
    cluster.prefer(OURS, NODE_ID)
    assert cluster.leads(OURS)
    node.publish(cluster.image)
    for value in (b"lost", b"lost as well"):
        node.append(cluster.image, TOPIC, batch(value))
    assert node.log.log_end_offset == before + 2
    assert b"lost as well" in content(node)
    cluster.heartbeat(fence=True)
    assert cluster.partition == (NODE_ID, {NODE_ID})
    cluster.produce_once_it_leads(batch(b"after the change"))
    cluster.produce_once_it_leads(batch(b"and more", b"and more"))
    assert b"lost" not in cluster.stored


def truncated(cluster: Cluster, node: ReplicationNode) -> None:
    """Ours follows again: its log is truncated to Kafka's, and it joins the ISR."""
    cluster.heartbeat(fence=False)
    ends = []
    node.publish(cluster.image)

    def joined() -> bool:
        ends.append(node.log.log_end_offset)
        return cluster.partition == (NODE_ID, {NODE_ID, OURS})

    node.run_until(joined, "back in the ISR")
    agreed(cluster, node)
    assert min(ends) == ends[0] - 2, "the log was truncated to where it diverges"
    assert b"lost" not in content(node)
    assert b"after the change" in content(node)
