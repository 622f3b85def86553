"""The asyncio shell around a cluster: listeners, sockets, the clock.

Law: the machine decides, the shell carries out: when to read a client and when to close it, too.
While requests wait for their turn the timer is due at once, so sockets are looked at between turns.

    socket ─▶ Received ─▶ Cluster ─▶ effects ─▶ socket
    one timer: Cluster.next_deadline() ─▶ Cluster.advance()
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ..broker import (
    AwaitDrain,
    Bounds,
    BrokerStarted,
    BrokerStopped,
    Close,
    Cluster,
    Disconnected,
    Effect,
    Endpoint,
    Event,
    LeaderMoved,
    PauseReading,
    Persist,
    Persisted,
    Received,
    Reply,
    Report,
    ResumeReading,
    Trim,
    Unreadable,
)
from ..broker.bounds import DEFAULT_BOUNDS
from ..broker.releases import LATEST
from .server_transport import ServerConnection

if TYPE_CHECKING:
    import ssl

    from .server_recording import Recording

HOST: Final = "127.0.0.1"
ACCEPT_ITERATIONS: Final = 3
"""RequestScheduler of the loop until a client that was taken just now is among `connections`."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What to serve.

    topics: name -> partitions. ports: one a broker, 0 for any; () for any of all. settings:
    Kafka's broker keys. passwords: user -> password, where `sasl.enabled.mechanisms` is set. tls:
    for all listeners. seed: of all rng and ids, None for a new one each time. bounds: how much
    the cluster holds of what Kafka has no key for.
    """

    brokers: int = 1
    topics: Mapping[str, int] = field(default_factory=dict)
    host: str = HOST
    ports: Sequence[int] = ()
    release: str = LATEST
    settings: Mapping[str, str] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    seed: int | None = None
    racks: Sequence[str] = ()
    bounds: Bounds = DEFAULT_BOUNDS


DEFAULT: Final = ServerConfig()


class Server:
    """A cluster that listens. Use as `async with Server(config) as server`.

    on_report: told of every request and its answer. on_persist: given what must survive. on_close:
    told of connections that the broker closes, and why. kept: what an earlier server gave to its
    `on_persist`, in order: this one goes on from there.
    """

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        *,
        on_report: Callable[[Report], None] | None = None,
        on_persist: Callable[[Persisted], None] | None = None,
        on_close: Callable[[Close], None] | None = None,
        recording: Recording | None = None,
        persisted: Sequence[Persisted] = (),
    ) -> None:
        self.config = config
        self.persisted = persisted
        self.on_report = on_report
        self.on_persist = on_persist
        self.on_close = on_close
        self.recording = recording
        self.endpoints: list[Endpoint] = []
        self.connections: dict[int, ServerConnection] = {}
        self._listeners: dict[int, asyncio.Server] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._ahead = 0.0

    # -- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on all ports, and make the topics that are configured."""
        self.loop = asyncio.get_running_loop()
        self._began = self.loop.time()
        sockets = [self._bound(at) for at in range(self.config.brokers)]
        for at, bound in enumerate(sockets):
            rack = self.config.racks[at] if at < len(self.config.racks) else None
            self.endpoints.append(Endpoint(at + 1, self.config.host, bound.getsockname()[1], rack))
        # not secrets: ids that a seed can repeat
        rng = random.Random(self.config.seed)
        self.cluster = Cluster(
            self.endpoints,
            new_uuid=lambda: uuid.UUID(int=rng.getrandbits(128), version=4).bytes,
            draw=rng.random,
            epoch_ms=int(time.time() * 1000),
            settings=self.config.settings,
            release=self.config.release,
            passwords=self.config.passwords,
            bounds=self.config.bounds,
        )
        if self.persisted:
            self._perform(self.cluster.restore(self.persisted, self.now()))
        for name, partitions in self.config.topics.items():
            if name not in self.cluster.topics:
                self.create_topic(name, partitions)
        for endpoint, bound in zip(self.endpoints, sockets, strict=True):
            await self._listen(endpoint, bound)

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        await self._accept_no_more(*self._listeners.values())
        while self.connections:
            for connection in list(self.connections.values()):
                connection.abort()
            await asyncio.sleep(0)
        for listener in self._listeners.values():
            await listener.wait_closed()
        if self._timer is not None:
            self._timer.cancel()
        if self.recording is not None:
            self.recording.close()

    async def _accept_no_more(self, *listeners: asyncio.Server) -> None:
        """Stop listening; who has been accepted by then is among `connections`.

        asyncio (to Python 3.11) loses the sockets of clients that it takes in the turn in which a
        listener is closed; so first it is kept from taking any.
        """
        for listener in listeners:
            for bound in listener.sockets:
                with suppress(NotImplementedError):  # a loop that waits for completion
                    self.loop.remove_reader(bound.fileno())
        for _ in range(ACCEPT_ITERATIONS):
            await asyncio.sleep(0)
        for listener in listeners:
            listener.close()

    def _bound(self, at: int) -> socket.socket:
        port = self.config.ports[at] if at < len(self.config.ports) else 0
        return socket.create_server((self.config.host, port), backlog=1024)

    async def _listen(self, endpoint: Endpoint, bound: socket.socket) -> None:
        self._listeners[endpoint.node_id] = await self.loop.create_server(
            lambda: ServerConnection(self, endpoint), sock=bound
        )

    @property
    def bootstrap(self) -> str:
        """Where clients begin: `host:port,...`."""
        return ",".join(f"{each.host}:{each.port}" for each in self.endpoints)

    # -- what an operator does

    def create_topic(
        self, name: str, partitions: int = 1, factor: int = 1, configs: Mapping[str, str] = {}
    ) -> None:
        """Make a topic."""
        spread = self.cluster.topics.spread(partitions, factor)
        self.cluster.creation.create(name, spread, dict(configs), self.now())
        self._perform(self.cluster.advance(self.now()))

    async def stop_broker(self, node_id: int) -> None:
        """Take a broker down: it no longer listens, its clients are cut off."""
        listener = self._listeners.pop(node_id)
        await self._accept_no_more(listener)
        self.handle(BrokerStopped(node_id))
        await listener.wait_closed()

    async def start_broker(self, node_id: int) -> None:
        """Bring a broker back, on the port it had."""
        endpoint = next(each for each in self.endpoints if each.node_id == node_id)
        self.handle(BrokerStarted(node_id))
        await self._listen(endpoint, socket.create_server((endpoint.host, endpoint.port)))

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        """Give a partition another leader, with a new epoch."""
        self.handle(LeaderMoved(topic, partition, leader_id, truncate_to))

    def advance(self, seconds: float) -> None:
        """Let time pass at once: what becomes due happens."""
        self._ahead += seconds
        self._perform(self.cluster.advance(self.now()))

    # -- the machine

    def now(self) -> float:
        """Say what time it is for the cluster, in seconds since it began."""
        return self.loop.time() - self._began + self._ahead

    def handle(self, event: Event) -> None:
        """Tell the machine, and do what it says."""
        self._perform(self.cluster.handle(event, self.now()))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.connections[effect.connection].send(effect.data)
                case Close():
                    if self.on_close is not None:
                        self.on_close(effect)
                    self.connections[effect.connection].close()
                case AwaitDrain():
                    self.connections[effect.connection].await_drain()
                case PauseReading():
                    self.connections[effect.connection].pause()
                case ResumeReading():
                    self.connections[effect.connection].resume()
                case Persist() | Trim():
                    if self.on_persist is not None:
                        self.on_persist(effect)
                case Report():
                    if self.on_report is not None:
                        self.on_report(effect)
        self._set_timer()

    def _set_timer(self) -> None:
        due = self.cluster.next_deadline()
        at = None if due is None else due - self._ahead + self._began
        if self._timer is not None:
            if at == self._timer.when() and not self._timer.cancelled():
                return
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer = self.loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        self._perform(self.cluster.advance(self.now()))

    def opened(self, connection: ServerConnection) -> int:
        """Number a connection."""
        self._count += 1
        self.connections[self._count] = connection
        return self._count

    def received(self, number: int, data: bytes) -> None:
        """Take bytes of a client."""
        self.handle(Received(number, data))

    def unreadable(self, number: int, reason: str) -> None:
        """Close a connection whose bytes are not what its listener speaks."""
        self.handle(Unreadable(number, reason))

    def lost(self, number: int) -> None:
        """Take in that a connection is gone."""
        self.handle(Disconnected(number))
        del self.connections[number]
