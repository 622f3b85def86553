"""A cluster and its clients in virtual time, for tests.

Bytes in, bytes out: requests are encoded and responses decoded strictly, in the version named.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

import kafkawire
from kafkawire import ApiKey, Message
from kafkawire.broker import (
    AwaitDrain,
    Bounds,
    Close,
    Connected,
    Disconnected,
    Drained,
    Endpoint,
    Fault,
    Received,
    Reply,
)
from kafkawire.broker.bounds import DEFAULT_BOUNDS
from kafkawire.broker.broker import Broker
from kafkawire.broker.groups.coordinators import Coordinators
from kafkawire.broker.metadata_cache import PartitionMetadata, TopicMetadata
from kafkawire.broker.network.socket_server import SocketServer
from kafkawire.configs import ResourceType
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kafkawire.messages.elect_leaders_response import ElectLeadersResponse
from kafkawire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkawire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.metadata import MetadataImage, TopicIdPartition
from kafkawire.node.composition import InMemory
from kafkawire.node.front.front import NodeFront
from kafkawire.node.front.options import FrontOptions
from kafkawire.node.lifecycle import BrokerState
from kafkawire.node.local_cluster import (
    ClusterEvent,
    Effect,
    Killed,
    LocalCluster,
    NodeStarted,
    ShutDown,
)
from kafkawire.node.local_node import LocalNode
from kafkawire.replication import Partition

M = TypeVar("M", bound=Message)
CLUSTER_ID = "kafkawire"
EPOCH_MS = 1_700_000_000_000
WAIT_SECONDS = 30.0
"""Seconds of virtual time within which nodes do what is waited for."""


class Client:
    """A client connection; `received` holds the bytes of responses."""

    def __init__(self, harness: Harness, number: int, node_id: int) -> None:
        self.harness = harness
        self.number = number
        self.node_id = node_id
        self.received = bytearray()
        self.closed: str | None = None
        self.in_flight: list[tuple[int, int, int]] = []
        self._correlation_id = 0

    def send(self, request: Message, version: int, client_id: str | None = "tester") -> None:
        """Send a request."""
        self._correlation_id += 1
        api_key = kafkawire.REGISTRY.get(type(request).__name__).api_key
        assert api_key is not None
        self.in_flight.append((api_key, version, self._correlation_id))
        self.send_bytes(
            kafkawire.encode_frame(request, version, self._correlation_id, client_id=client_id)
        )

    def send_bytes(self, data: bytes) -> None:
        self.harness.handle(Received(self.number, data))

    def frame(self) -> bytes | None:
        """Take the next frame, size included, if it is there."""
        if len(self.received) < 4:
            return None
        size = 4 + int.from_bytes(self.received[:4], "big")
        if len(self.received) < size:
            return None
        data = bytes(self.received[:size])
        del self.received[:size]
        return data

    def response(self) -> Message | None:
        """Take the next response, if it is there."""
        data = self.frame()
        if data is None:
            return None
        api_key, version, correlation_id = self.in_flight.pop(0)
        frame = kafkawire.decode_frame(data, response_to=(api_key, version))
        assert frame.correlation_id == correlation_id, "responses are in order"
        return frame.body

    def receive(self, expected: type[M]) -> M:
        """Take the next response, which must be of that kind."""
        body = self.response()
        assert isinstance(body, expected), (body, self.closed)
        return body

    def exchange(self, request: Message, version: int, expected: type[M]) -> M:
        """Send a request and take its response, which followers may delay."""
        self.send(request, version)
        if self.is_waiting() and self.closed is None:
            self.harness.wait(lambda: not self.is_waiting() or self.closed is not None)
        return self.receive(expected)

    def is_waiting(self) -> bool:
        """Whether a request has no response yet."""
        return bool(self.in_flight) and len(self.received) == 0

    def disconnect(self) -> None:
        """Close the connection."""
        self.harness.handle(Disconnected(self.number))


class Harness:
    """The nodes of a cluster in memory, and their clock.

    Requests between nodes take no time; stopping a node does, until others have taken over.
    """

    def __init__(
        self,
        brokers: int = 1,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        release: str = "all",
        passwords: Mapping[str, str] | None = None,
        seed: int = 1,
        load_seconds: float = 0.0,
        bounds: Bounds = DEFAULT_BOUNDS,
        combined: bool = False,
    ) -> None:
        properties = dict(settings or {})
        sasl = "sasl.enabled.mechanisms" in properties
        endpoints = [
            Endpoint(node, f"broker-{node}", 9090 + node) for node in range(1, brokers + 1)
        ]
        options = FrontOptions(passwords or {}, load_seconds=load_seconds)
        nodes = InMemory(
            endpoints,
            EPOCH_MS,
            properties,
            cluster_id=CLUSTER_ID,
            listener="SASL_PLAINTEXT" if sasl else "PLAINTEXT",
            bounds=bounds,
            release=release,
            combined=combined,
        ).nodes()
        self._begin(nodes, options, seed, 0.0)
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions)

    def _begin(
        self, nodes: Iterable[LocalNode], options: FrontOptions, seed: int, now: float
    ) -> None:
        """Start nodes, and wait for their brokers."""
        rng = random.Random(seed)
        self._seed = seed
        self.now = now
        self.options = options
        self.cluster = LocalCluster(nodes, rng, lambda: rng.randbytes(16), options)
        self.clients: dict[int, Client] = {}
        self.effects: list[Effect] = []
        self.not_draining: set[int] = set()
        self._count = 0
        self._take(self.cluster.start(self.now))
        brokers = [
            front.machines.node.parts.broker
            for front in self.cluster.fronts.values()
            if front.machines.node.parts.broker is not None
        ]
        self.wait(lambda: all(each.lifecycle.state is BrokerState.RUNNING for each in brokers))
        self.wait(lambda: len(self.alive) == len(brokers))

    def restored(self) -> Self:
        """Return another cluster that starts from copies of the disks, at the same time.

        This one goes on as it is.
        """
        nodes = [
            LocalNode(each.config, copy.deepcopy(each.disks))
            for each in self.cluster.nodes.values()
        ]
        restored = copy.copy(self)
        restored._begin(nodes, self.options, self._seed + 1, self.now)  # it has other ids
        return restored

    # -- what it has

    @property
    def image(self) -> MetadataImage:
        """The newest metadata."""
        return self.cluster.image()

    @property
    def alive(self) -> set[int]:
        """The brokers that are active."""
        return {each.broker_id for each in self.image.brokers.values() if each.is_active}

    def front(self, node_id: int = 1) -> NodeFront:
        """Return the machine of a node."""
        return self.cluster.front(node_id)

    def broker(self, node_id: int = 1) -> Broker:
        """Return what the request handlers of a node work with."""
        return self.front(node_id).broker.broker

    def server(self, node_id: int = 1) -> SocketServer:
        """Return the connections of a node's clients."""
        return self.front(node_id).broker.server

    def groups(self, node_id: int = 1) -> Coordinators:
        """Return the group coordinators of a node."""
        return self.broker(node_id).groups

    def topic(self, name: str) -> TopicMetadata | None:
        """Find a topic as a broker that runs knows it."""
        return self.broker(min(self.alive)).topics.get(name)

    def partition(self, topic: str, index: int = 0) -> PartitionMetadata:
        """Return a partition."""
        partition = self.broker(min(self.alive)).topics.partition(topic, index)
        assert partition is not None
        return partition

    def key(self, topic: str, index: int = 0) -> TopicIdPartition:
        """Return the key of a partition's replicas."""
        known = self.topic(topic)
        assert known is not None
        return TopicIdPartition(known.topic_id, index)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition."""
        return self.partition(topic, partition).leader_id

    def is_unfenced(self, node_id: int) -> bool:
        """Return whether the broker of a node that runs may lead, as the controller told it."""
        broker = self.front(node_id).machines.node.parts.broker
        return broker is not None and not broker.lifecycle.is_fenced

    def replica(self, topic: str, index: int = 0, node_id: int | None = None) -> Partition:
        """Return the replica of a partition on a node, or that of its leader."""
        node = self.leader_of(topic, index) if node_id is None else node_id
        replica = self.front(node).machines.replica(self.key(topic, index))
        assert replica is not None
        return replica

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject."""
        return self.cluster.faults

    # -- what an administrator does

    def create_topic(self, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> None:
        """Create a topic; underscores in configs stand for dots."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        response = self.administer(request, CreateTopicsResponse)
        assert not response.topics[0].error_code, response

    def delete_topics(self, *names: str) -> None:
        """Delete topics."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])
        response = self.administer(request, DeleteTopicsResponse)
        assert not any(each.error_code for each in response.responses), response

    def alter_configs(
        self, kind: ResourceType, name: str, configs: Mapping[str, str | None]
    ) -> None:
        """Set values of a topic or of brokers; None for the default."""
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                AlterableConfig(name=key, config_operation=int(value is None), value=value)
                for key, value in configs.items()
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = self.administer(request, IncrementalAlterConfigsResponse)
        assert not response.responses[0].error_code, response

    def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Move a partition's leader: it becomes the preferred one, and is elected."""
        replicas = self.partition(topic, partition).replicas
        order = [leader_id, *(each for each in replicas if each != leader_id)]
        moved = ReassignablePartition(partition_index=partition, replicas=order)
        self.administer(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic, partitions=[moved])]
            ),
            AlterPartitionReassignmentsResponse,
        )
        self.wait(lambda: leader_id in self.partition(topic, partition).isr)
        elected = TopicPartitions(topic=topic, partitions=[partition])
        self.administer(ElectLeadersRequest(topic_partitions=[elected]), ElectLeadersResponse)
        self.wait(lambda: self.leader_of(topic, partition) == leader_id)

    def elect_uncleanly(
        self, topic: str, leader_id: int, lost: Callable[[], object], partition: int = 0
    ) -> None:
        """Let a follower lead that lacks what `lost` produces.

        All other brokers are down meanwhile, and follow it then.
        """
        first = self.leader_of(topic, partition)
        followers = sorted(self.alive - {first}, key=lambda each: each != leader_id)
        for each in followers:
            self.stop_broker(each)
        self.wait(lambda: self.partition(topic, partition).isr == [first])
        lost()
        self.kill_broker(first)
        for each in (*followers, first):
            self.start_broker(each)
        assert self.leader_of(topic, partition) == leader_id

    def administer(self, body: Message, expected: type[M]) -> M:
        """Send a request of an administrator, in the newest version that the brokers have."""
        client = self.client(
            min(self.alive), listener=self.cluster.nodes[1].config.inter_broker_listener
        )
        key = kafkawire.REGISTRY.get(type(body).__name__).api_key
        assert key is not None
        version = self.broker(client.node_id).apis.served[ApiKey(key)].last
        response = client.exchange(body, version, expected)
        client.disconnect()
        return response

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker in order: others lead its partitions before it stops."""
        self.handle(ShutDown(node_id))
        self.wait(lambda: node_id not in self.cluster.running)

    def kill_broker(self, node_id: int) -> None:
        """End a broker at once; its session expires."""
        self.handle(Killed(node_id))
        self.wait(lambda: node_id not in self.alive)

    def start_broker(self, node_id: int) -> None:
        """Start a broker with what its disks have."""
        self.handle(NodeStarted(node_id))
        self.wait(lambda: node_id in self.alive)

    # -- clients and time

    def client(self, node_id: int = 1, host: str = "127.0.0.1", listener: str = "") -> Client:
        """Connect, to the listener of clients or the named one."""
        self._count += 1
        number = self._count
        self.clients[number] = Client(self, number, node_id)
        self.handle(Connected(number, node_id, host, listener))
        return self.clients[number]

    def handle(self, event: ClusterEvent) -> None:
        """Handle an event, and advance until no work is left at this time."""
        self._take(self.cluster.handle(event, self.now))
        while (due := self.cluster.next_deadline()) is not None and due <= self.now:
            self._take(self.cluster.advance(self.now))

    def advance(self, seconds: float) -> None:
        """Advance the time, deadline by deadline."""
        end = self.now + seconds
        while (due := self.cluster.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._take(self.cluster.advance(self.now))
        self.now = end

    def wait(self, done: Callable[[], bool]) -> None:
        """Let time pass until something is true."""
        end = self.now + WAIT_SECONDS
        while not done():
            due = self.cluster.next_deadline()
            assert due is not None
            assert due <= end, "it did not happen in time"
            self.now = max(self.now, due)
            self._take(self.cluster.advance(self.now))

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            match effect:
                case Reply():
                    self.clients[effect.connection].received += effect.data
                case Close():
                    self.clients[effect.connection].closed = effect.reason
                case AwaitDrain():
                    if effect.connection not in self.not_draining:
                        self.handle(Drained(effect.connection))


def metadata(client: Client, *topics: str, version: int = 12, **fields: Any) -> MetadataResponse:
    """Request metadata of topics."""
    requested = [MetadataRequestTopic(name=name) for name in topics]
    return client.exchange(MetadataRequest(topics=requested, **fields), version, MetadataResponse)


def key_of(name: str) -> ApiKey:
    number = kafkawire.REGISTRY.get(f"{name}Request").api_key
    assert number is not None
    return ApiKey(number)
