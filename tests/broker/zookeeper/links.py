"""A cluster with ZooKeeper whose connections between brokers are in memory, in virtual time.

Law: a request that one broker sends is delivered to the cluster as bytes of a client, in the order
of the effects; its response comes back the same way. Nothing is lost unless a test cuts it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import kafkawire
from kafkawire import Message
from kafkawire.broker import (
    BrokerStarted,
    BrokerStopped,
    Close,
    Cluster,
    Connected,
    Disconnected,
    Effect,
    Endpoint,
    Received,
    Reply,
    Report,
)
from kafkawire.broker.effects import (
    CloseBrokerConnection,
    ControlledShutdownDone,
    OpenBrokerConnection,
    SendToBroker,
)
from kafkawire.broker.events import (
    BrokerConnectionClosed,
    BrokerConnectionOpened,
    ClusterStarted,
    Event,
    ReceivedFromBroker,
    ShutdownRequested,
)

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
        self.cluster = Cluster(
            [
                Endpoint(node, "127.0.0.1", 9000 + node, f"r{node}")
                for node in range(1, brokers + 1)
            ],
            new_uuid=lambda: rng.randbytes(16),
            draw=rng.random,
            settings=settings,
            release=release,
            zookeeper=True,
        )
        self.open: dict[int, Ends] = {}
        self.reports: list[Report] = []
        self.done: list[int] = []
        self.unreachable: set[int] = set()
        self.replies: dict[int, bytearray] = {}
        self._events: deque[Event] = deque()
        self.handle(ClusterStarted())

    # -- what a test does

    def handle(self, event: Event) -> None:
        """Handle an event, and all that follows from it without time passing."""
        self._events.append(event)
        while self._events:
            self.perform(self.cluster.handle(self._events.popleft(), self.now))
            self._run()

    def _run(self) -> None:
        while (due := self.cluster.next_deadline()) is not None and due <= self.now:
            self.perform(self.cluster.advance(self.now))

    def advance(self, seconds: float) -> None:
        """Let time pass, deadline by deadline."""
        until = self.now + seconds
        while (due := self.cluster.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self._run()
            while self._events:
                self.perform(self.cluster.handle(self._events.popleft(), self.now))
                self._run()
        self.now = until

    def call(self, effects: Iterable[Effect] = ()) -> None:
        """Carry out what a direct call of the controller left to do."""
        self.perform([*effects, *self.cluster.advance(self.now)])
        while self._events:
            self.handle(self._events.popleft())

    def create(self, name: str, assignments: list[list[int]]) -> None:
        """Create a topic."""
        self.cluster.controller.create_topic(name, assignments, {}, self.now)
        self.call()

    def shut_down(self, node_id: int) -> None:
        """Stop a broker in order."""
        self.handle(ShutdownRequested(node_id))
        while node_id not in self.done:
            due = self.cluster.next_deadline()
            assert due is not None
            self.advance(due - self.now)
        self.done.remove(node_id)
        self.stop(node_id)

    def stop(self, node_id: int) -> None:
        """Stop a broker at once: its connections are lost."""
        self.handle(BrokerStopped(node_id))

    def start(self, node_id: int) -> None:
        """Start a broker again."""
        self.handle(BrokerStarted(node_id))

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
        assert self.cluster.zookeeper is not None
        return self.cluster.zookeeper.registry.broker_epochs[node_id]

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
                case OpenBrokerConnection(connection, node_id):
                    self._connect(connection, node_id)
                case SendToBroker(connection, data):
                    self._events.append(Received(ACCEPTED + connection, data))
                case CloseBrokerConnection(connection):
                    self._closed_by_client(connection)
                case Reply():
                    self._reply(effect)
                case Close(number):
                    self._closed_by_broker(number)
                case Report():
                    self.reports.append(effect)
                case ControlledShutdownDone(node_id):
                    self.done.append(node_id)
                case _:
                    pass

    def _connect(self, connection: int, node_id: int) -> None:
        if node_id in self.unreachable or not self.cluster.metadata.is_alive(node_id):
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
