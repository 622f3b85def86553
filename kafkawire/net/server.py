"""Runs a cluster of nodes in memory in asyncio: a listener for the clients of each broker."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
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
from .nodes import operations
from .server_config import DEFAULT, ServerConfig
from .server_transport import Listener
from .shell import Observers, Shell, bound, random_uuid

if TYPE_CHECKING:
    import socket

ITERATIONS: Final = 10
"""Iterations of the event loop before it is waited."""
POLL: Final = 0.005
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
        self.start_clock()
        config = self.config
        sockets = [self._bound(number) for number in range(config.brokers)]
        for number, sock in enumerate(sockets):
            rack = config.racks[number] if number < len(config.racks) else None
            port = sock.getsockname()[1]
            self.endpoints.append(Endpoint(number + 1, config.host, port, rack))
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
        await self._until(lambda: all(map(self.machine.is_active, brokers)))
        configured = Settings(config.settings).number("default.replication.factor")
        factor = min(configured, config.brokers)
        for name, partitions in config.topics.items():
            if self.machine.image().topic(name) is None:
                await self.create_topic(name, partitions, factor)
        for endpoint, sock in zip(self.endpoints, sockets, strict=True):
            await self.listen(self._listener(endpoint), sock)

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait until something is true."""
        for _ in range(ITERATIONS):  # mostly it is: what nodes send each other takes no time
            if done():
                return
            await asyncio.sleep(0)
        while not done():
            await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        await self.close_connections()
        if self.observers.recording is not None:
            self.observers.recording.close()

    def _bound(self, number: int) -> socket.socket:
        port = self.config.ports[number] if number < len(self.config.ports) else 0
        return bound(self.config.host, port)

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
        self.advance(0.0)
        return response

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, str] = {},
    ) -> None:
        """Create a topic; returns when its partitions have leaders. Raises BrokerError."""
        await operations.create_topic(self._send, name, partitions, factor, configs)
        await self._until(
            lambda: all(operations.is_led(image, name) for image in self.machine.images())
        )

    async def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Let another broker lead a partition. Raises ValueError, BrokerError."""
        await operations.move_leader(
            self._send, self.machine.image, self._until, (topic, partition), leader_id
        )
        await self._until(
            lambda: all(
                operations.leader_of(image, topic, partition) == leader_id
                for image in self.machine.images()
            )
        )

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
        await self._until(lambda: self.machine.is_active(node_id))
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
