"""One node and its clients in virtual time, bytes in, bytes out, for tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from kafkawire.broker import AwaitDrain, Close, Drained, Reply, Report
from kafkawire.broker.metadata_cache import MetadataCache, TopicMetadata
from kafkawire.broker.releases import LATEST
from kafkawire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
from kafkawire.node import (
    LogRecovered,
    Node,
    NodeConfig,
    Published,
    SegmentRolled,
    ShutdownRequested,
    Stopped,
)
from kafkawire.node.front.front import Accepted, Effect, Event, NodeFront
from kafkawire.node.front.options import FrontOptions
from kafkawire.primitives import Message
from kafkawire.raft import Endpoint, ReplicaKey, Timeouts, Voter, VoterSet
from kafkawire.storage import MemoryDisk

from ..broker.harness import Client, M

BROKER, CONTROLLER = Endpoint("PLAINTEXT", "node", 9092), Endpoint("CONTROLLER", "node", 9093)
EPOCH_MS = 1_700_000_000_000
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
WAIT_SECONDS = 30.0
"""Seconds of virtual time within which a node serves clients, and responds to them."""


class NodeClient(Client):
    """A client of a node: a response may take some virtual time."""

    def __init__(self, harness: NodeHarness, number: int) -> None:
        super().__init__(harness, number, 1)  # type: ignore[arg-type]
        self.node = harness

    def exchange(self, request: Message, version: int, expected: type[M]) -> M:
        """Send a request; time goes on until its response is there."""
        self.send(request, version)
        if not self.received:
            self.node.wait(lambda: len(self.received) >= 4 or self.closed is not None)
        return self.receive(expected)


class NodeHarness:
    """A node, its disk, and the clock."""

    def __init__(
        self,
        settings: Mapping[str, str] = {},
        topics: Mapping[str, int] = {},
        listeners: tuple[Endpoint, ...] = (BROKER,),
        passwords: Mapping[str, str] = {},
        initial: Mapping[str, int] = {},
        release: str = LATEST,
        scram_credentials: tuple[UserScramCredentialRecord, ...] = (),
    ) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        """How long the node's thread has worked, in seconds."""
        self.scram_credentials = scram_credentials
        self.release = release
        self.listeners = listeners
        self.passwords = passwords
        self.initial = initial
        self.now = 0.0
        self.disk = MemoryDisk()
        self.settings = {**SETTINGS, **settings}
        self.clients: dict[int, NodeClient] = {}
        self.random = random.Random(1)
        self.stopped: Stopped | None = None
        self.reports: list[LogRecovered | SegmentRolled] = []
        self.start()
        for name, partitions in topics.items():
            self.create_topic(name, partitions)

    def start(self) -> None:
        """Start the node from its disk, and wait until it is unfenced."""
        self.launch()
        metadata = self.front.broker.metadata
        self.wait(lambda: len(metadata.alive_endpoints()) == 1)

    def launch(self) -> None:
        """Start the node from its disk."""
        voters = VoterSet((Voter(ReplicaKey(1), (CONTROLLER,)),))
        config = NodeConfig(
            1,
            "a-cluster",
            listeners=(*self.listeners, CONTROLLER),
            voters=voters,
            static=self.settings,
            epoch_ms=EPOCH_MS,
            quorum=Timeouts(append_linger=0.001),
            release=self.release,
            scram_credentials=self.scram_credentials,
        )
        self.stopped = None
        disks = {"data": self.disk}
        node = Node(config, disks, self.random, lambda: self.random.randbytes(16), self.now)
        self.front = NodeFront(
            node,
            config,
            lambda: self.random.randbytes(16),
            self.random.random,
            FrontOptions(self.passwords, self.initial, clock=lambda: self.clock()),
        )
        self._take(self.front.start(self.now))

    def restart(self, lose_unflushed: bool = False) -> None:
        """Kill the node, and start it again."""
        if lose_unflushed:
            self.disk.crash(lambda _: 0)
        self.clients = {}
        self.start()

    def shut_down(self) -> None:
        """Let the node stop in order."""
        self.handle(ShutdownRequested())
        self.wait(lambda: self.stopped is not None)

    @property
    def cluster(self) -> MetadataCache:
        """The topics, where a `Harness` has them."""
        return self.front.broker.metadata

    def topic(self, name: str) -> TopicMetadata | None:
        """Find a topic."""
        return self.cluster.topics.get(name)

    def create_topic(self, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> None:
        """Create a topic; underscores in configs stand for dots."""
        given = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=factor, configs=given
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        response = self.client().exchange(request, 7, CreateTopicsResponse)
        assert not response.topics[0].error_code, response
        self.wait(lambda: name in self.cluster.topics)

    def client(self, _node_id: int = 1, listener: str = "PLAINTEXT") -> NodeClient:
        """Connect."""
        number = len(self.clients) + 1
        self.clients[number] = NodeClient(self, number)
        self.handle(Accepted(listener, number, "127.0.0.1"))
        return self.clients[number]

    def handle(self, event: Event) -> None:
        """Handle an event, and advance until no work is left at this time."""
        self._take(self.front.handle(event, self.now))
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        """Advance the time, deadline by deadline."""
        end = self.now + seconds
        while (due := self.front.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._take(self.front.advance(self.now))
        self.now = end

    def wait(self, done: object) -> None:
        """Let time pass until something is true."""
        assert callable(done)
        end = self.now + WAIT_SECONDS
        while not done() and self.now < end:
            due = self.front.next_deadline()
            if due is None:
                break
            self.advance(max(0.0, due - self.now))

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Report():
                    pass
                case Reply():
                    self.clients[effect.connection].received += effect.data
                case Close():
                    self.clients[effect.connection].closed = effect.reason
                case AwaitDrain():
                    self.handle(Drained(effect.connection))
                case Stopped():
                    self.stopped = effect
                case LogRecovered() | SegmentRolled():
                    self.reports.append(effect)
                case Published():
                    assert effect.delta.offset <= effect.image.offset
