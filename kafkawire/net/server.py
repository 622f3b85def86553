"""Runs a cluster of nodes in memory in asyncio."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from copy import deepcopy
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from ..broker import Fault
from ..broker.configs import Settings
from ..broker.security.protocols import SecurityProtocol
from ..node.composition import Disks, InMemory
from ..node.effects import Stopped
from ..node.front.options import FrontOptions
from ..node.local_cluster import (
    CONTROLLER_ID,
    ClusterEvent,
    Killed,
    LocalCluster,
    LocalNode,
    NodeEffect,
    NodeStarted,
    ShutDown,
)
from ..primitives import Message
from .cluster_shell import ClusterShell, epoch_ms
from .fixture import NewTopic
from .nodes.topics import ClusterTopics, until
from .server_config import DEFAULT, ServerConfig
from .shell import Observers, random_uuid

if TYPE_CHECKING:
    from .broker_connections import BrokerConnections

STEP: Final = 0.25
"""Seconds by which the clocks of several brokers are advanced at once, so that none lags behind."""
MOST_STEPS: Final = 200

__all__ = ["Server", "ServerConfig"]


class Server(ClusterShell):
    """A cluster that listens. Use as `async with Server(config) as server`.

    disks: what another cluster with the same brokers had on its disks, to begin with copies of it.
    """

    machine: LocalCluster

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        observers: Observers | None = None,
        *,
        disks: Disks | None = None,
    ) -> None:
        super().__init__(config, observers)
        self._disks = disks or {}
        unknown = self._disks.keys() - {CONTROLLER_ID, *range(1, config.brokers + 1)}
        if unknown:
            raise ValueError(f"persisted: of brokers {sorted(unknown)}; there are {config.brokers}")
        self._stopped: dict[int, asyncio.Future[None]] = {}
        self._broker_connections: BrokerConnections | None = None
        self.topics = ClusterTopics(self._send, lambda: self.machine.images())

    # -- lifecycle

    async def _start_brokers(self) -> None:
        config = self.config
        # not secrets: ids that a seed can repeat
        rng = random.Random(config.seed)
        sasl = "sasl.enabled.mechanisms" in config.settings
        brokers = [each.node_id for each in self.endpoints]
        composition = InMemory(
            self.endpoints,
            epoch_ms(),
            config.settings,
            listener=SecurityProtocol.with_(sasl=sasl, tls=config.tls is not None).name,
            directories=[f"disk-{number}" for number in range(1, config.directories + 1)],
            bounds=config.bounds,
            release=config.release,
            zookeeper=config.zookeeper,
            disks=self._disks,
        )
        self.machine = self._machine(composition.nodes(), rng)
        self.run(lambda: self.machine.start(self.now()))
        await until(lambda: all(map(self.machine.is_active, brokers)))
        configured = Settings(config.settings).number("default.replication.factor")
        factor = min(configured, config.brokers)
        for name, partitions in config.topics.items():
            if self.machine.image().topic(name) is None:
                await self.topics.create(NewTopic(name, partitions, factor, {}))

    def _machine(self, nodes: Sequence[LocalNode], rng: random.Random) -> LocalCluster:
        """Compose the cluster; with ZooKeeper, its brokers connect to each other."""
        options = FrontOptions(self.config.passwords)

        def new_uuid() -> bytes:
            return random_uuid(rng)

        if not self.config.zookeeper:
            return LocalCluster(nodes, rng, new_uuid, options)
        # imported only where needed
        from ..node.zookeeper.cluster import ZooKeeperCluster
        from .broker_connections import BrokerConnections

        machine = ZooKeeperCluster(self.endpoints, nodes, rng, new_uuid, options)
        self._broker_connections = BrokerConnections(
            self.endpoints, lambda event: self.run(lambda: machine.handle(event, self.now()))
        )
        return machine

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._broker_connections is not None:
            self._broker_connections.close()
        await super().close()

    @property
    def faults(self) -> list[Fault]:
        """The faults to inject into requests of clients."""
        return self.machine.faults

    def advance(self, seconds: float) -> None:
        """Advance the clock of all brokers; several do so together, step by step."""
        steps = 1 if self.config.brokers == 1 else min(MOST_STEPS, ceil(seconds / STEP) or 1)
        for _ in range(steps):
            super().advance(seconds / steps)

    # -- actions of an operator

    async def _send(self, request: Message) -> Message:
        response = self.machine.administer(request, self.now())
        super().advance(0.0)
        return response

    async def stop_broker(self, node_id: int) -> None:
        """Stop a broker in order: others lead its partitions before it stops."""
        stopped = self._stopped[node_id] = self.loop.create_future()
        self.handle(ShutDown(node_id))
        await stopped
        await self._stop_listener(node_id)

    async def kill_broker(self, node_id: int) -> None:
        """End a broker at once."""
        await self._stop_listener(node_id)
        self.handle(Killed(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped or killed, on its port, with what its disks have."""
        self.handle(NodeStarted(node_id))
        await until(lambda: self.machine.is_active(node_id))
        await self._listen_again(node_id)

    def runs(self, node_id: int) -> bool:
        """Return whether a broker runs."""
        return node_id in self.machine.running

    @property
    def disks(self) -> Disks:
        """Copies of the disks of all nodes, as they are now."""
        return {node_id: deepcopy(node.disks) for node_id, node in self.machine.nodes.items()}

    # -- the cluster

    def handle(self, event: ClusterEvent) -> None:
        """Pass an event to the cluster and carry out its effects."""
        self.run(lambda: self.machine.handle(event, self.now()))

    def carry_out(self, effect: Any) -> None:
        """Take note of a node that has stopped; carry out what brokers send each other."""
        match effect:
            case NodeEffect(node_id, Stopped()):
                stopped = self._stopped.pop(node_id, None)
                if stopped is not None:
                    stopped.set_result(None)
            case NodeEffect(_, of_node) if self._broker_connections is not None:
                self._broker_connections.perform(of_node)
