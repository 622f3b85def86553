"""Runs a cluster of nodes in memory in asyncio: a listener for the clients of each broker."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from math import ceil
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ..broker import Endpoint, Fault
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
    NodeEffect,
    NodeStarted,
    ShutDown,
)
from ..primitives import Message
from .fixture import NewTopic
from .nodes.topics import ClusterTopics, until
from .server_config import DEFAULT, ServerConfig
from .server_transport import Listener
from .shell import Observers, Shell, bound, random_uuid

if TYPE_CHECKING:
    import socket

STEP: Final = 0.25
"""Seconds by which the clocks of several brokers are advanced at once, so that none lags behind."""
MOST_STEPS: Final = 200

__all__ = ["Server", "ServerConfig"]


class Server(Shell):
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
        super().__init__(observers or Observers())
        self.config = config
        self.endpoints: list[Endpoint] = []
        self._disks = disks or {}
        unknown = self._disks.keys() - {CONTROLLER_ID, *range(1, config.brokers + 1)}
        if unknown:
            raise ValueError(f"persisted: of brokers {sorted(unknown)}; there are {config.brokers}")
        self._stopped: dict[int, asyncio.Future[None]] = {}
        self.topics = ClusterTopics(self._send, lambda: self.machine.images())

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
        await self.close()

    async def start(self) -> None:
        """Listen on all ports, and create the configured topics."""
        self.start_clock()
        with ExitStack() as opened:
            sockets = [opened.enter_context(each) for each in self._bound()]
            await self._start_nodes()
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

    async def _start_nodes(self) -> None:
        """Start the nodes; returns when they are active, and the topics exist."""
        config = self.config
        # not secrets: ids that a seed can repeat
        rng = random.Random(config.seed)
        sasl = "sasl.enabled.mechanisms" in config.settings
        brokers = [each.node_id for each in self.endpoints]
        composition = InMemory(
            self.endpoints,
            int(time.time() * 1000),
            config.settings,
            listener=SecurityProtocol.with_(sasl=sasl, tls=config.tls is not None).name,
            directories=[f"disk-{number}" for number in range(1, config.directories + 1)],
            bounds=config.bounds,
            release=config.release,
            disks=self._disks,
        )
        self.machine = LocalCluster(
            composition.nodes(),
            rng,
            lambda: random_uuid(rng),
            FrontOptions(config.passwords),
        )
        self.run(lambda: self.machine.start(self.now()))
        await until(lambda: all(map(self.machine.is_active, brokers)))
        configured = Settings(config.settings).number("default.replication.factor")
        factor = min(configured, config.brokers)
        for name, partitions in config.topics.items():
            if self.machine.image().topic(name) is None:
                await self.topics.create(NewTopic(name, partitions, factor, {}))

    async def close(self) -> None:
        """Stop listening and close all connections."""
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
        await self.stop_listening([self._listener(self._endpoint(node_id))])

    async def kill_broker(self, node_id: int) -> None:
        """End a broker at once."""
        await self.stop_listening([self._listener(self._endpoint(node_id))])
        self.handle(Killed(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped or killed, on its port, with what its disks have."""
        endpoint = self._endpoint(node_id)
        self.handle(NodeStarted(node_id))
        await until(lambda: self.machine.is_active(node_id))
        await self.listen(self._listener(endpoint), bound(endpoint.host, endpoint.port))

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
        """Take note of a node that has stopped."""
        if isinstance(effect, NodeEffect) and isinstance(effect.effect, Stopped):
            stopped = self._stopped.pop(effect.node_id, None)
            if stopped is not None:
                stopped.set_result(None)
