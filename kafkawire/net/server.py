"""Runs a cluster in asyncio: listeners, sockets, timer.

Law: the cluster decides and the server carries out, also when to read from a client and when to
close it. While requests are queued the timer is due at once, so sockets are polled between time
slices.

    socket ─▶ Received ─▶ Cluster ─▶ effects ─▶ socket
    one timer: Cluster.next_deadline() ─▶ Cluster.advance()
"""

# over 300 lines: one shell: listeners, sockets and timer of a cluster in memory

from __future__ import annotations

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ..broker import (
    AwaitDrain,
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
from .server_config import DEFAULT, ServerConfig
from .server_transport import ServerConnection
from .timer import Timer

if TYPE_CHECKING:
    import ssl

    from .broker_connections import BrokerConnections
    from .server_recording import Recording

__all__ = ["Server", "ServerConfig"]

ACCEPT_ITERATIONS: Final = 3
"""Iterations of the event loop until an accepted client is in `connections`."""


class Server:
    """A cluster that listens. Use as `async with Server(config) as server`.

    on_report: called with each request and its response. on_persist: called with each effect to
    persist. on_close: called with each connection that the broker closes, and the reason.
    persisted: the effects persisted by an earlier server, in order, to restore it from.
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
        self._timer = Timer(self._due)
        self._broker_connections: BrokerConnections | None = None
        self._count = 0
        self._advanced = 0.0

    # -- lifecycle

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
        """Listen on all ports, and create the configured topics."""
        self.loop = asyncio.get_running_loop()
        self._started_at = self.loop.time()
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
            zookeeper=self.config.zookeeper,
        )
        if self.persisted:
            self._perform(self.cluster.restore(self.persisted, self.now()))
        if self.config.zookeeper:
            from .broker_connections import BrokerConnections  # imported only where needed

            self._broker_connections = BrokerConnections(self.endpoints, self.handle)
            self._broker_connections.start()
        for name, partitions in self.config.topics.items():
            if name not in self.cluster.topics:
                self.create_topic(name, partitions)
        for endpoint, bound in zip(self.endpoints, sockets, strict=True):
            await self._listen(endpoint, bound)

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._broker_connections is not None:
            self._broker_connections.close()
        await self._stop_accepting(*self._listeners.values())
        while self.connections:
            for connection in list(self.connections.values()):
                connection.abort()
            await asyncio.sleep(0)
        for listener in self._listeners.values():
            await listener.wait_closed()
        self._timer.set(None)
        if self.recording is not None:
            self.recording.close()

    async def _stop_accepting(self, *listeners: asyncio.Server) -> None:
        """Stop listening; all clients accepted before are in `connections` then.

        asyncio (to Python 3.11) leaks the sockets of clients accepted in the loop iteration in
        which a listener is closed; so accepting is stopped first.
        """
        for listener in listeners:
            for bound in listener.sockets:
                with suppress(NotImplementedError):  # a proactor event loop
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
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of all listeners."""
        return self.config.tls

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`."""
        return ",".join(f"{each.host}:{each.port}" for each in self.endpoints)

    # -- actions of an operator

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, str] = {},
    ) -> None:
        """Create a topic. factor: at most the number of brokers; None: as configured."""
        if factor is None:
            factor = self.cluster.settings.number("default.replication.factor")
        spread = self.cluster.topics.spread(partitions, factor)
        self.cluster.controller.create_topic(name, spread, dict(configs), self.now())
        self._perform(self.cluster.advance(self.now()))

    async def stop_broker(self, node_id: int) -> None:
        """Stop a broker: it no longer listens, and its connections are closed.

        With ZooKeeper, the controller moves its leaders away first.
        """
        if self._broker_connections is not None and node_id in self._listeners:
            await self._broker_connections.shut_down(node_id)
        listener = self._listeners.pop(node_id)
        await self._stop_accepting(listener)
        self.handle(BrokerStopped(node_id))
        await listener.wait_closed()

    async def start_broker(self, node_id: int) -> None:
        """Start a stopped broker on its port."""
        endpoint = next(each for each in self.endpoints if each.node_id == node_id)
        self.handle(BrokerStarted(node_id))
        await self._listen(endpoint, socket.create_server((endpoint.host, endpoint.port)))

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        """Move a partition's leader; its leader epoch is incremented."""
        self.handle(LeaderMoved(topic, partition, leader_id, truncate_to))

    def advance(self, seconds: float) -> None:
        """Advance the cluster's clock at once; expired deadlines are handled."""
        self._advanced += seconds
        self._perform(self.cluster.advance(self.now()))

    # -- the cluster

    def now(self) -> float:
        """Return the cluster's time in seconds since it started."""
        return self.loop.time() - self._started_at + self._advanced

    def handle(self, event: Event) -> None:
        """Pass an event to the cluster and carry out its effects."""
        self._perform(self.cluster.handle(event, self.now()))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.connections[effect.connection].send(effect.buffers)
                case Report():
                    if self.on_report is not None:
                        self.on_report(effect)
                case Persist() | Trim():
                    if self.on_persist is not None:
                        self.on_persist(effect)
                case Close():
                    if self.on_close is not None:
                        self.on_close(effect)
                    self.connections[effect.connection].close()
                case AwaitDrain() | PauseReading() | ResumeReading():
                    self._apply_flow_control(effect)
                case _:
                    assert self._broker_connections is not None
                    self._broker_connections.perform(effect)
        self._set_timer()

    def _apply_flow_control(self, effect: AwaitDrain | PauseReading | ResumeReading) -> None:
        connection = self.connections[effect.connection]
        match effect:
            case AwaitDrain():
                connection.await_drain()
            case PauseReading():
                connection.pause()
            case ResumeReading():
                connection.resume()

    def _set_timer(self) -> None:
        due = self.cluster.next_deadline()
        self._timer.set(None if due is None else due - self._advanced + self._started_at)

    def _due(self) -> None:
        self._perform(self.cluster.advance(self.now()))

    def opened(self, connection: ServerConnection) -> int:
        """Register a connection and return its id."""
        self._count += 1
        self.connections[self._count] = connection
        return self._count

    def is_open(self, number: int) -> bool:
        """Whether a connection is open."""
        return number in self.connections

    def received(self, number: int, data: bytes) -> None:
        """Handle bytes received from a client."""
        self.handle(Received(number, data))

    def unreadable(self, number: int, reason: str) -> None:
        """Close a connection that is not valid TLS."""
        self.handle(Unreadable(number, reason))

    def lost(self, number: int) -> None:
        """Handle the end of a connection."""
        self.handle(Disconnected(number))
        del self.connections[number]
