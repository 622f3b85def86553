"""A cluster and its clients in virtual time, for tests.

Law: bytes in, bytes out: requests are encoded and responses decoded strictly, in the version named.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import kafkawire
from kafkawire import ApiKey, Message
from kafkawire.broker import (
    AwaitDrain,
    Bounds,
    BrokerStarted,
    BrokerStopped,
    Close,
    Cluster,
    Connected,
    Disconnected,
    Drained,
    Effect,
    Endpoint,
    Event,
    LeaderMoved,
    Persist,
    Persisted,
    Received,
    Reply,
    Trim,
)
from kafkawire.broker.bounds import DEFAULT_BOUNDS
from kafkawire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafkawire.messages.metadata_response import MetadataResponse

M = TypeVar("M", bound=Message)
EPOCH_MS = 1_700_000_000_000


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
        """Send a request and take its response."""
        self.send(request, version)
        return self.receive(expected)

    def is_waiting(self) -> bool:
        """Whether a request has no response yet."""
        return bool(self.in_flight) and len(self.received) == 0

    def disconnect(self) -> None:
        """Close the connection."""
        self.harness.handle(Disconnected(self.number))


class Harness:
    """The cluster and its clock."""

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
    ) -> None:
        self.now = 0.0
        self.settings = dict(settings or {})
        rng = random.Random(seed)
        self.cluster = Cluster(
            [Endpoint(node, f"broker-{node}", 9090 + node) for node in range(1, brokers + 1)],
            new_uuid=lambda: rng.randbytes(16),
            draw=rng.random,
            epoch_ms=EPOCH_MS,
            settings=settings,
            release=release,
            passwords=passwords,
            load_seconds=load_seconds,
            bounds=bounds,
        )
        self.clients: dict[int, Client] = {}
        self.persisted: list[Persisted] = []
        self.effects: list[Effect] = []
        self.not_draining: set[int] = set()
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions)

    def restored(self, persisted: Iterable[Persisted] | None = None) -> Harness:
        """Return a cluster restored from the persisted effects of this one, at the same time."""
        harness = Harness(len(self.cluster.brokers), settings=self.settings, seed=2)
        harness.now = self.now
        harness.persisted = list(self.persisted if persisted is None else persisted)
        harness._take(harness.cluster.restore(list(harness.persisted), self.now))
        return harness

    def create_topic(self, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> None:
        """Create a topic; underscores in configs stand for dots."""
        spread = self.cluster.topics.spread(partitions, factor)
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.cluster.controller.create_topic(name, spread, named, self.now)
        self._take(self.cluster.advance(self.now))

    def client(self, node_id: int = 1, host: str = "127.0.0.1") -> Client:
        """Connect."""
        number = len(self.clients) + 1
        self.clients[number] = Client(self, number, node_id)
        self.handle(Connected(number, node_id, host))
        return self.clients[number]

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition."""
        found = self.cluster.topics.partition(topic, partition)
        assert found is not None
        return found.leader_id

    def handle(self, event: Event) -> None:
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
        self._take(self.cluster.advance(end))

    def stop_broker(self, node_id: int) -> None:
        self.handle(BrokerStopped(node_id))

    def start_broker(self, node_id: int) -> None:
        self.handle(BrokerStarted(node_id))

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        self.handle(LeaderMoved(topic, partition, leader_id, truncate_to))

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
                case Persist() | Trim():
                    self.persisted.append(effect)


def metadata(client: Client, *topics: str, version: int = 12, **fields: Any) -> MetadataResponse:
    """Request metadata of topics."""
    requested = [MetadataRequestTopic(name=name) for name in topics]
    return client.exchange(MetadataRequest(topics=requested, **fields), version, MetadataResponse)


def key_of(name: str) -> ApiKey:
    number = kafkawire.REGISTRY.get(f"{name}Request").api_key
    assert number is not None
    return ApiKey(number)
