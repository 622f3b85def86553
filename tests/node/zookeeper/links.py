"""A cluster with ZooKeeper whose connections between brokers are in memory, in virtual time.

A request that one broker sends is delivered to the cluster as bytes of a client, in the order
of the effects; its response comes back the same way. Nothing is lost unless a test cuts it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import kafkawire
from kafkawire import Message
from kafkawire.broker import Close, Connected, Disconnected, Endpoint, Received, Reply, Report
from kafkawire.broker.control_state import ControlState
from kafkawire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.metadata import PartitionRegistration
from kafkawire.node.broker_connections import (
    BrokerConnectionClosed,
    BrokerConnectionOpened,
    CloseBrokerConnection,
    OpenBrokerConnection,
    ReceivedFromBroker,
    SendToBroker,
)
from kafkawire.node.composition import InMemory
from kafkawire.node.local_cluster import (
    CONTROLLER_ID,
    Effect,
    Killed,
    NodeEffect,
    NodeStarted,
    ShutDown,
)
from kafkawire.node.operator_requests import OperatorRequest, OperatorResponse
from kafkawire.node.zookeeper.cluster import ZooKeeperCluster, ZooKeeperEvent

LONGEST = 10.0
"""Seconds within which a broker starts, or its session ends."""
ACCEPTED = 1_000_000
"""The clients' side of a connection between brokers has its number plus this."""


class Sent(NamedTuple):
    """A request that one broker sent to another."""

    client_id: str | None
    node_id: int
    version: int
    correlation_id: int
    body: Message


@dataclass
class Ends:
    """A connection between brokers: to which, and whether the network has lost it."""

    node_id: int


class Links:
    """The cluster, and the network between its brokers."""

    def __init__(
        self, release: str = "2.7", brokers: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        rng = random.Random(5)
        self.now = 0.0
        self.nodes = range(1, brokers + 1)
        endpoints = [Endpoint(node, "127.0.0.1", 9000 + node, f"r{node}") for node in self.nodes]
        composition = InMemory(
            endpoints, 0, settings or {}, cluster_id="kafkawire", release=release, zookeeper=True
        )
        self.cluster = ZooKeeperCluster(
            endpoints, composition.nodes(), rng, lambda: rng.randbytes(16)
        )
        self.open: dict[int, Ends] = {}
        self.reports: list[Report] = []
        self.unreachable: set[int] = set()
        self.replies: dict[int, bytearray] = {}
        self._events: deque[ZooKeeperEvent] = deque()
        self._requests = 0
        self._responses: dict[int, Message | None] = {}
        self.perform(self.cluster.start(self.now))
        self._handle_queued()
        self.until(lambda: self.cluster.registry.alive == {*self.nodes})

    # -- what a test does

    def handle(self, event: ZooKeeperEvent) -> None:
        """Handle an event, and all that follows from it without time passing."""
        self._events.append(event)
        self._handle_queued()

    def _handle_queued(self) -> None:
        self._run()
        while self._events:
            self.perform(self.cluster.handle(self._events.popleft(), self.now))
            self._run()

    def _run(self) -> None:
        while (due := self.cluster.next_deadline()) is not None and due <= self.now:
            self.perform(self.cluster.advance(self.now))

    def advance(self, seconds: float) -> None:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        while (due := self.cluster.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._handle_queued()
        self.now = end

    def until(self, done: Callable[[], bool]) -> None:
        """Let as much time pass as something takes."""
        end = self.now + LONGEST
        while not done():
            due = self.cluster.next_deadline()
            assert due is not None
            assert due < end
            self.advance(max(0.0, due - self.now))

    def request(self, body: Message) -> Message:
        """Let the quorum handle a request of an administrator."""
        self._requests += 1
        number = self._requests
        self.handle(OperatorRequest(number, body))
        self.until(lambda: number in self._responses)
        response = self._responses.pop(number)
        assert response is not None
        return response

    def create(self, name: str, assignments: Sequence[Sequence[int]]) -> Message:
        """Create a topic."""
        assigned = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[*replicas])
            for index, replicas in enumerate(assignments)
        ]
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assigned
        )
        return self.request(CreateTopicsRequest(topics=[topic], timeout_ms=1000))

    def extend(self, name: str, assignments: Sequence[Sequence[int]]) -> Message:
        """Add partitions to a topic."""
        topic = CreatePartitionsTopic(
            name=name,
            count=len(self.partitions(name)) + len(assignments),
            assignments=[CreatePartitionsAssignment(broker_ids=[*each]) for each in assignments],
        )
        return self.request(CreatePartitionsRequest(topics=[topic], timeout_ms=1000))

    def delete(self, name: str) -> Message:
        """Delete a topic."""
        return self.request(
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000)
        )

    def reassign(self, name: str, index: int, replicas: Sequence[int]) -> Message:
        """Begin to move a partition to these replicas."""
        partition = ReassignablePartition(partition_index=index, replicas=[*replicas])
        topic = ReassignableTopic(name=name, partitions=[partition])
        return self.request(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=1000))

    def control(self, node_id: int) -> ControlState:
        """Return what a broker knows from its controllers."""
        control = self.cluster.front(node_id).broker.control
        assert control is not None
        return control

    def partitions(self, name: str) -> list[PartitionRegistration]:
        """Return the partitions of a topic, as the quorum has them."""
        topic = self.cluster.front(CONTROLLER_ID).machines.node.image.topic(name)
        assert topic is not None
        return [topic.partitions[index] for index in sorted(topic.partitions)]

    def shut_down(self, node_id: int) -> None:
        """Stop a broker in order."""
        self.handle(ShutDown(node_id))
        self.until(lambda: node_id not in self.cluster.running)

    def stop(self, node_id: int) -> None:
        """Kill a broker, and let its session end."""
        if node_id in self.cluster.running:
            self.handle(Killed(node_id))
        self.until(lambda: node_id not in self.cluster.registry.alive)

    def start(self, node_id: int) -> None:
        """Start a broker again, and let it catch up."""
        self.handle(NodeStarted(node_id))
        self.until(lambda: node_id in self.cluster.registry.alive)
        self.until(self.is_in_sync)

    def is_in_sync(self) -> bool:
        """Whether each replica on a broker that is up is in the ISR."""
        alive = self.cluster.registry.alive
        return all(
            {*each.replicas} & alive <= {*each.isr}
            for each in self.cluster.registry.partitions.values()
        )

    def take(self) -> list[Sent]:
        """Take the requests that brokers have processed, in the order of their responses."""
        taken = [
            Sent(
                each.request.client_id,
                each.request.node_id,
                each.request.version,
                each.request.correlation_id,
                each.request.body,
            )
            for each in self.reports
        ]
        self.reports.clear()
        return taken

    def processed(self) -> list[Sent]:
        """Return the requests that brokers have processed, and keep them."""
        kept = list(self.reports)
        taken = self.take()
        self.reports = kept
        return taken

    def broker_epoch(self, node_id: int) -> int:
        """Return the epoch of a broker's registration."""
        return self.cluster.registry.broker_epochs[node_id]

    def exchange(self, node_id: int, request: Message, version: int) -> Message:
        """Send a request to a broker as any client, and return the response."""
        number = ACCEPTED * 2
        self.replies[number] = bytearray()
        self.handle(Connected(number, node_id))
        self.handle(Received(number, kafkawire.encode_frame(request, version, 1, client_id="c")))
        data = bytes(self.replies.pop(number))
        self.handle(Disconnected(number))
        key = kafkawire.REGISTRY.get(type(request).__name__).api_key
        assert key is not None
        body = kafkawire.decode_frame(data, response_to=(key, version)).body
        assert isinstance(body, Message)
        return body

    # -- the network

    def perform(self, effects: Iterable[Effect]) -> None:
        """Carry out the effects."""
        for effect in effects:
            match effect:
                case NodeEffect(_, OpenBrokerConnection(connection, node_id)):
                    self._connect(connection, node_id)
                case NodeEffect(_, SendToBroker(connection, data)):
                    self._events.append(Received(ACCEPTED + connection, data))
                case NodeEffect(_, CloseBrokerConnection(connection)):
                    self._closed_by_client(connection)
                case Reply():
                    self._reply(effect)
                case Close(number):
                    self._closed_by_broker(number)
                case Report():
                    self.reports.append(effect)
                case OperatorResponse(number, body):
                    self._responses[number] = body
                case _:
                    pass

    def _connect(self, connection: int, node_id: int) -> None:
        if node_id in self.unreachable or node_id not in self.cluster.running:
            self._events.append(BrokerConnectionClosed(connection))
            return
        self.open[connection] = Ends(node_id)
        self._events.append(Connected(ACCEPTED + connection, node_id))
        self._events.append(BrokerConnectionOpened(connection))

    def _reply(self, effect: Reply) -> None:
        if effect.connection in self.replies:
            self.replies[effect.connection] += effect.data
        else:
            self._events.append(ReceivedFromBroker(effect.connection - ACCEPTED, effect.data))

    def _closed_by_client(self, connection: int) -> None:
        if self.open.pop(connection, None) is not None:
            self._events.append(Disconnected(ACCEPTED + connection))

    def _closed_by_broker(self, number: int) -> None:
        if self.open.pop(number - ACCEPTED, None) is not None:
            self._events.append(BrokerConnectionClosed(number - ACCEPTED))
        self._events.append(Disconnected(number))
