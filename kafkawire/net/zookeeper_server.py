"""Runs a cluster of brokers that show a ZooKeeper-era controller in asyncio."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..broker import (
    BrokerStarted,
    BrokerStopped,
    Cluster,
    Event,
    Fault,
    LeaderMoved,
    Persist,
    Persisted,
    Trim,
)
from ..client.failures import BrokerError
from ..protocol import ErrorCode
from .cluster_shell import ClusterShell, epoch_ms
from .server_config import DEFAULT, ServerConfig
from .shell import Observers, random_uuid

if TYPE_CHECKING:
    from .broker_connections import BrokerConnections


class ZooKeeperServer(ClusterShell):
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
        super().__init__(config, observers)
        self.persisted = persisted
        self.on_persist = on_persist
        self._broker_connections: BrokerConnections | None = None

    # -- lifecycle

    async def _start_brokers(self) -> None:
        # not secrets: ids that a seed can repeat
        rng = random.Random(self.config.seed)
        self.machine = self.cluster = Cluster(
            self.endpoints,
            new_uuid=partial(random_uuid, rng),
            draw=rng.random,
            epoch_ms=epoch_ms(),
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
        await super().close()

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
        await self._stop_listener(node_id)
        self.handle(BrokerStopped(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Start a stopped broker on its port."""
        self.handle(BrokerStarted(node_id))
        await self._listen_again(node_id)

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
