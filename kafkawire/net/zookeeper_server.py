"""Runs a cluster of brokers that show a ZooKeeper-era controller in asyncio."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from ..broker import (
    BrokerStarted,
    BrokerStopped,
    Cluster,
    Endpoint,
    Event,
    Fault,
    LeaderMoved,
    Persist,
    Persisted,
    Trim,
)
from ..client.failures import BrokerError
from ..protocol import ErrorCode
from .server_config import DEFAULT, ServerConfig
from .server_transport import Listener
from .shell import Observers, Shell, bound, random_uuid

if TYPE_CHECKING:
    import socket

    from .broker_connections import BrokerConnections


class ZooKeeperServer(Shell):
    """A cluster that listens. Use as `async with ZooKeeperServer(config) as server`.

    on_persist: called with each effect to persist. persisted: the effects persisted by an earlier
    server, in order, to restore it from.
    """

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        observers: Observers | None = None,
        *,
        on_persist: Callable[[Persisted], None] | None = None,
        persisted: Sequence[Persisted] = (),
    ) -> None:
        super().__init__(observers or Observers())
        self.config = config
        self.persisted = persisted
        self.on_persist = on_persist
        self.endpoints: list[Endpoint] = []
        self._broker_connections: BrokerConnections | None = None

    # -- lifecycle

    async def start(self) -> None:
        """Listen on all ports, and create the configured topics."""
        self.start_clock()
        with ExitStack() as opened:
            sockets = [opened.enter_context(each) for each in self._bound()]
            self._create_cluster()
            opened.pop_all()  # they are the listeners'
        for endpoint, sock in zip(self.endpoints, sockets, strict=True):
            await self.listen(self._listener(endpoint), sock)

    def _bound(self) -> Iterator[socket.socket]:
        """Bind a socket for each broker."""
        host, ports, racks = self.config.host, self.config.ports, self.config.racks
        for index in range(self.config.brokers):
            sock = bound(host, ports[index] if index < len(ports) else 0)
            rack = racks[index] if index < len(racks) else None
            self.endpoints.append(Endpoint(index + 1, host, sock.getsockname()[1], rack))
            yield sock

    def _create_cluster(self) -> None:
        # not secrets: ids that a seed can repeat
        rng = random.Random(self.config.seed)
        self.machine = self.cluster = Cluster(
            self.endpoints,
            new_uuid=partial(random_uuid, rng),
            draw=rng.random,
            epoch_ms=int(time.time() * 1000),
            settings=self.config.settings,
            release=self.config.release,
            passwords=self.config.passwords,
            bounds=self.config.bounds,
            zookeeper=self.config.zookeeper,
        )
        if self.persisted:
            self.run(lambda: self.cluster.restore(self.persisted, self.now()))
        if self.config.zookeeper:
            from .broker_connections import BrokerConnections  # imported only where needed

            self._broker_connections = BrokerConnections(self.endpoints, self.handle)
            self._broker_connections.start()
        for name, partitions in self.config.topics.items():
            if name not in self.cluster.topics:
                self.create_topic(name, partitions)

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._broker_connections is not None:
            self._broker_connections.close()
        await self.close_connections()
        if self.observers.recording is not None:
            self.observers.recording.close()

    def _listener(self, endpoint: Endpoint) -> Listener:
        return Listener(endpoint, tls=self.config.tls)

    def _endpoint(self, node_id: int) -> Endpoint:
        return next(each for each in self.endpoints if each.node_id == node_id)

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`."""
        return ",".join(f"{each.host}:{each.port}" for each in self.endpoints)

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject into requests of clients."""
        return self.cluster.faults

    # -- actions of an operator

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, str] = {},
    ) -> None:
        """Create a topic. factor: at most the number of brokers; None: as configured.

        Raises BrokerError for a topic that exists.
        """
        if name in self.cluster.topics:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, name)
        if factor is None:
            factor = self.cluster.settings.number("default.replication.factor")
        spread = self.cluster.topics.spread(partitions, factor)
        self.cluster.controller.create_topic(name, spread, dict(configs), self.now())
        self.advance(0.0)

    async def stop_broker(self, node_id: int) -> None:
        """Stop a broker: it no longer listens, and its connections are closed.

        With ZooKeeper, the controller moves its leaders away first.
        """
        if self._broker_connections is not None and node_id in self.cluster.topics.alive:
            await self._broker_connections.shut_down(node_id)
        await self.kill_broker(node_id)

    async def kill_broker(self, node_id: int) -> None:
        """Stop a broker without notice."""
        await self.stop_listening([self._listener(self._endpoint(node_id))])
        self.handle(BrokerStopped(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Start a stopped broker on its port."""
        endpoint = self._endpoint(node_id)
        self.handle(BrokerStarted(node_id))
        await self.listen(self._listener(endpoint), bound(endpoint.host, endpoint.port))

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        """Move a partition's leader; its leader epoch is incremented."""
        self.handle(LeaderMoved(topic, partition, leader_id, truncate_to))

    # -- the cluster

    def handle(self, event: Event) -> None:
        """Pass an event to the cluster and carry out its effects."""
        self.run(lambda: self.cluster.handle(event, self.now()))

    def carry_out(self, effect: Any) -> None:
        """Persist an effect, or carry out one between brokers."""
        if isinstance(effect, Persist | Trim):
            if self.on_persist is not None:
                self.on_persist(effect)
            return
        assert self._broker_connections is not None
        self._broker_connections.perform(effect)
