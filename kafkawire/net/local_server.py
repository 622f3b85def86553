"""Runs a cluster of nodes in memory in asyncio: a listener for each broker's clients."""

from __future__ import annotations

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ..broker import Endpoint, Fault
from ..broker.security.protocols import SecurityProtocol
from ..errors import KafkaWireError
from ..messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ..messages.create_topics_response import CreateTopicsResponse
from ..node.composition import in_memory
from ..node.effects import Stopped
from ..node.front.options import FrontOptions
from ..node.local_cluster import (
    ClusterEvent,
    Killed,
    LocalCluster,
    NodeEffect,
    NodeStarted,
    ShutDown,
)
from .server_config import DEFAULT, ServerConfig
from .server_transport import Listener
from .shell import Observers, Shell

BACKLOG = 1024


class LocalServer(Shell):
    """A cluster that listens. Use as `async with LocalServer(config) as server`."""

    machine: LocalCluster

    def __init__(self, config: ServerConfig = DEFAULT, observers: Observers | None = None) -> None:
        super().__init__(observers or Observers())
        self.config = config
        self.endpoints: list[Endpoint] = []
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
        for number, bound in enumerate(sockets):
            rack = config.racks[number] if number < len(config.racks) else None
            port = bound.getsockname()[1]
            self.endpoints.append(Endpoint(number + 1, config.host, port, rack))
        # not secrets: ids that a seed can repeat
        rng = random.Random(config.seed)
        sasl = "sasl.enabled.mechanisms" in config.settings
        nodes = in_memory(
            self.endpoints,
            config.settings,
            int(time.time() * 1000),
            listener=SecurityProtocol.with_(sasl=sasl, tls=config.tls is not None).name,
            bounds=config.bounds,
            release=config.release,
        )
        self.machine = LocalCluster(
            nodes,
            rng,
            lambda: uuid.UUID(int=rng.getrandbits(128), version=4).bytes,
            FrontOptions(config.passwords),
        )
        self.run(lambda: self.machine.start(self.now()))
        await self._until_active(config.brokers)
        for name, partitions in config.topics.items():
            self.create_topic(name, partitions)
        for endpoint, bound in zip(self.endpoints, sockets, strict=True):
            await self.listen(self._listener(endpoint), bound)

    async def _until_active(self, brokers: int) -> None:
        """Let time pass until that many brokers are active."""
        while sum(each.is_active for each in self.machine.image().brokers.values()) < brokers:
            await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        await self.close_connections()
        if self.observers.recording is not None:
            self.observers.recording.close()

    def _bound(self, number: int) -> socket.socket:
        port = self.config.ports[number] if number < len(self.config.ports) else 0
        return socket.create_server((self.config.host, port), backlog=BACKLOG)

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

    # -- actions of an operator

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, str] = {},
    ) -> None:
        """Create a topic. factor: None for `default.replication.factor`.

        Raises KafkaWireError if the controller refuses it.
        """
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1 if factor is None else factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        response = self.machine.administer(CreateTopicsRequest(topics=[topic]), self.now())
        self.advance(0.0)
        assert isinstance(response, CreateTopicsResponse)
        result = response.topics[0]
        if result.error_code:
            raise KafkaWireError(f"topic {name}: {result.error_message}")

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
        await self._until_active(len(self.machine.running))
        bound = socket.create_server((endpoint.host, endpoint.port))
        await self.listen(self._listener(endpoint), bound)

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
