"""A cluster of nodes without faults of their own, and a client that waits for its responses."""

from __future__ import annotations

from typing import Any

from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafkawire.metadata import MetadataImage, PartitionRegistration, TopicIdPartition
from kafkawire.node import COMBINED, Node, NodeConfig, ShutdownRequested
from kafkawire.node.broker.broker_server import BrokerServer
from kafkawire.node.invariants import values
from kafkawire.primitives import Message

from .clients import (
    CREATE_VERSION,
    FETCH_VERSION,
    PRODUCE_VERSION,
    create_topic,
    fetch,
    fetched,
    produce,
    produced,
)
from .network import CLIENT, Network, config_of, voters

WAIT_SECONDS = 30.0
"""Seconds of virtual time within which anything must happen."""


def combined(nodes: int, **more: Any) -> list[NodeConfig]:
    """Return the configurations of nodes with both roles."""
    ids = range(1, nodes + 1)
    return [config_of(id, voters(ids), COMBINED, **more) for id in ids]


class Cluster(Network):
    """Nodes that have started, and whose brokers are unfenced."""

    def __init__(self, configs: list[NodeConfig], seed: int = 1, *, two: bool = False) -> None:
        super().__init__(seed, configs, two=two)
        self.prepare()
        self.brokers = [each.node_id for each in configs if each.is_broker]
        for config in configs:
            self.start(config.node_id)
        self.unfenced(len(self.brokers))

    def prepare(self) -> None:
        """Write what disks have before the first start."""

    def wait(self, done: Any) -> None:
        """Let time pass until something is true."""
        assert self.run(self.now + WAIT_SECONDS, done)

    # -- what nodes know

    def node(self, id: int) -> Node:
        node = self.processes[id].node
        assert isinstance(node, Node)
        return node

    def broker(self, id: int) -> BrokerServer:
        broker = self.node(id).parts.broker
        assert broker is not None
        return broker

    def live(self) -> list[int]:
        """List the brokers that run."""
        return [each for each in self.brokers if self.processes[each].node is not None]

    def newest(self) -> MetadataImage:
        """Return the newest image of a broker."""
        images = [self.broker(each).loader.image for each in self.live()]
        return max(images, key=lambda image: image.offset)

    def unfenced(self, count: int) -> None:
        """Wait until so many brokers are unfenced."""
        self.wait(lambda: sum(each.is_active for each in self.newest().brokers.values()) == count)

    def active_controller(self) -> int | None:
        """Return the node whose controller decides."""
        for id, process in self.processes.items():
            controller = None if process.node is None else process.node.parts.controller
            if controller is not None and controller.is_active:
                return id
        return None

    def key(self, topic: str, index: int = 0) -> TopicIdPartition | None:
        """Return the key of a partition, if the topic is known."""
        found = self.newest().topic(topic)
        return None if found is None else TopicIdPartition(found.topic_id, index)

    def partition(self, topic: str, index: int = 0) -> PartitionRegistration:
        """Return the newest state of a partition."""
        key = self.key(topic, index)
        found = None if key is None else self.newest().partition(key)
        assert found is not None
        return found

    def block(self, one: int, other: int, seconds: float) -> None:
        """Cut two nodes off from each other."""
        for link in ((one, other), (other, one)):
            self.blocked[link] = self.now + seconds

    def leader(self, topic: str, index: int = 0) -> int:
        """Wait for the leader of the newest epoch, and return it."""
        self.wait(lambda: self._leader(topic, index) is not None)
        found = self._leader(topic, index)
        assert found is not None
        return found

    def _leader(self, topic: str, index: int) -> int | None:
        key = self.key(topic, index)
        registration = None if key is None else self.newest().partition(key)
        if key is None or registration is None or registration.leader not in self.live():
            return None
        replica = self.broker(registration.leader).replicas.partitions.get(key)
        known = replica is not None and replica.is_leader
        same = replica is not None and replica.leader_epoch == registration.leader_epoch
        return registration.leader if known and same else None

    # -- a client

    def exchange(
        self, target: int, version: int, body: Message, listener: str = "PLAINTEXT"
    ) -> Any:
        """Send a request, and wait for the response."""
        found: list[Message | None] = []
        self.request(CLIENT, target, listener, version, body, found.append, WAIT_SECONDS)
        self.wait(lambda: bool(found))
        return found[0]

    def create(self, name: str, partitions: int, replicas: int, **configs: str) -> None:
        """Create a topic, and wait until all brokers know it."""
        request = create_topic(name, partitions, replicas, **configs)
        body = self.exchange(self.live()[0], CREATE_VERSION, request)
        assert isinstance(body, CreateTopicsResponse)
        assert not body.topics[0].error_code, body
        self.wait(lambda: all(self.broker(each).loader.image.topic(name) for each in self.live()))

    def delete(self, *names: str) -> None:
        """Delete topics, and wait until no broker knows them."""
        topics = [DeleteTopicState(name=each) for each in names]
        request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
        responses = self.exchange(self.live()[0], 6, request).responses
        assert not any(each.error_code for each in responses)
        images = [self.broker(each).loader for each in self.live()]
        self.wait(lambda: not any(each.image.topic(name) for each in images for name in names))

    def produce(self, topic: str, *values: bytes, index: int = 0, acks: int = -1) -> Any:
        """Produce to the leader; return what it says of the partition."""
        leader = self.leader(topic, index)
        return produced(
            self.exchange(leader, PRODUCE_VERSION, produce(topic, index, *values, acks=acks))
        )

    def read(self, topic: str, index: int = 0) -> list[bytes]:
        """Read all that is committed in a partition."""
        leader = self.leader(topic, index)
        key = self.key(topic, index)
        assert key is not None
        body = self.exchange(leader, FETCH_VERSION, fetch(key.topic_id, index, 0))
        return [value for _, value in values(fetched(body).records)]

    def shut_down(self, id: int) -> None:
        """Shut a node down in order, and wait for its end."""
        process = self.processes[id]
        self.handle(process, ShutdownRequested())
        self.wait(lambda: process.node is None)
        assert process.failure is None
