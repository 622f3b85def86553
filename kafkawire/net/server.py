"""Runs a cluster of nodes in one process in asyncio."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from ..broker import Fault
from ..broker.configs import Settings
from ..node.composition import Disks, InMemory
from ..node.effects import Stopped
from ..node.front.options import FrontOptions
from ..node.links import LinkCarried, LinkClosed, LinkOpened
from ..node.local_cluster import (
    CONTROLLER_ID,
    ClusterEvent,
    Killed,
    LocalCluster,
    NodeEffect,
    NodeStarted,
    ShutDown,
)
from ..node.local_node import LocalNode
from ..node.operator_requests import OperatorRequest, OperatorResponse
from ..primitives import Message
from ..protocol.json_form import uuid_text
from .brokers.cluster_shell import ClusterShell, advertised, bound_addresses, epoch_ms
from .brokers.key_endpoints import KeyEndpoints
from .brokers.shell import Observers, random_uuid
from .listeners import check_in_memory
from .nodes.topics import ClusterTopics, until
from .partitions import NewTopic
from .server_config import DEFAULT, ServerConfig

if TYPE_CHECKING:
    from .brokers.broker_connections import BrokerConnections

STEP: Final = 0.25
"""Seconds by which the clocks of several brokers are advanced at once, so that none lags behind."""
MOST_STEPS: Final = 200
ELECTION: Final = 1.0
"""Seconds in which combined nodes elect a controller, and its brokers register."""
SESSIONS: Final = 2.0
"""Seconds in which the sessions expire of brokers that had the disks before."""
MOST_START: Final = 60.0
"""Seconds in which brokers start, or the cluster does not."""

__all__ = ["Server", "ServerConfig"]


class Server(ClusterShell):
    """A cluster that listens. Use as `async with Server(config) as server`.

    disks: what another cluster with the same brokers had on its disks, to begin with copies of it.
    combined: whether each broker is a controller, too, and votes; all listeners of nodes have ports
    then, and what nodes send each other is recorded, too. Otherwise there is one controller, which
    outlives brokers. on_effect: called with each
    effect of a node that is neither for a client nor for another node.
    """

    machine: LocalCluster

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        observers: Observers | None = None,
        *,
        disks: Disks | None = None,
        combined: bool = False,
        on_effect: Callable[[NodeEffect], None] | None = None,
    ) -> None:
        plan = config.listeners()
        if plan.has_controller and config.brokers > 1 and not combined:
            reason = "the controller of several brokers in memory has no port"
            raise ValueError(f"listeners: {plan.controller}: {reason}")
        names = (*plan.names, plan.controller) if combined else ()
        check_in_memory(plan)
        super().__init__(config, plan, observers, names)
        self._combined = combined
        self._on_effect = on_effect
        self._disks = disks or {}
        nodes = {*range(1, config.brokers + 1), *(() if combined else (CONTROLLER_ID,))}
        unknown = self._disks.keys() - nodes
        if unknown:
            raise ValueError(f"persisted: of brokers {sorted(unknown)}; there are {config.brokers}")
        self._keys = KeyEndpoints(config.settings)
        self._broker_connections: BrokerConnections | None = None
        self._failures: dict[int, str] = {}
        self._stopping: dict[int, asyncio.Task[None]] = {}
        """Node that has stopped -> the end of its listeners."""
        self._responses: dict[int, asyncio.Future[Message | None]] = {}
        self._request_numbers = count(1)
        self.topics = ClusterTopics(
            self._send, lambda: self.machine.images(), lambda: self.machine.is_published()
        )

    # -- lifecycle

    async def _start_brokers(self) -> None:
        config = self.config
        await self._keys.start()
        # not secrets: ids that a seed can repeat
        rng = random.Random(config.seed)
        brokers = [each.node_id for each in self.endpoints]
        # passes in the machine alone: nobody is connected, and its clock begins so much earlier
        start = ELECTION * self._combined + SESSIONS * bool(self._disks)
        of_brokers = {node_id: self._of(node_id) for node_id in brokers}
        composition = InMemory(
            [each.advertised for each in self.listeners if each.name == self.client_listener],
            epoch_ms() - int((start + self.now()) * 1000),
            config.settings,
            cluster_id=uuid_text(random_uuid(rng)),
            listener=self.client_listener,
            directories=[f"disk-{number}" for number in range(1, config.directories + 1)],
            bounds=config.bounds,
            release=config.release,
            zookeeper=config.zookeeper,
            disks=self._disks,
            combined=self._combined,
            listeners={node_id: advertised(each) for node_id, each in of_brokers.items()},
            names=self.plan.names,
            own={
                node_id: self.plan.properties(bound_addresses(each), advertised(each))
                for node_id, each in of_brokers.items()
            },
        )
        self.machine = self._machine(composition.nodes(), rng)
        self.run(lambda: self.machine.start(self.now()))
        self._skip_until(lambda: all(map(self._has_started, brokers)))
        self._skip_until(lambda: self._advanced >= start)
        configured = Settings(config.settings).number("default.replication.factor")
        factor = min(configured, config.brokers)
        for name, partitions in config.topics.items():
            if self.machine.image().topic(name) is None:
                await self.topics.create(NewTopic(name, partitions, factor, {}))

    def _machine(self, nodes: Sequence[LocalNode], rng: random.Random) -> LocalCluster:
        """Compose the cluster; with ZooKeeper, its brokers connect to each other."""
        reports = self.observers.on_report is not None
        options = FrontOptions(
            self.config.passwords,
            reports=reports,
            clock=time.thread_time,
            key_sources=self._keys.sources,
            stores=self.stores,
        )

        def new_uuid() -> bytes:
            return random_uuid(rng)

        if not self.config.zookeeper:
            observes_links = self._combined and self.observers.recording is not None
            return LocalCluster(nodes, rng, new_uuid, options, observes_links=observes_links)
        # imported only where needed
        from ..node.zookeeper.cluster import ZooKeeperCluster
        from .brokers.broker_connections import BrokerConnections

        machine = ZooKeeperCluster(self.endpoints, nodes, rng, new_uuid, options)
        self._broker_connections = BrokerConnections(
            self.endpoints, lambda event: self.run(lambda: machine.handle(event, self.now()))
        )
        return machine

    def _skip_until(self, done: Callable[[], bool]) -> None:
        """Advance the clock to the next deadline until something is true. Raises TimeoutError."""
        end = self.now() + MOST_START
        while not done():
            due = self.machine.next_deadline()
            if due is None or due > end:
                raise TimeoutError(f"brokers did not start within {MOST_START:g} seconds")
            super().advance(max(0.0, due - self.now()))

    def _has_started(self, node_id: int) -> bool:
        """Whether a broker serves clients. Raises RuntimeError if it has stopped before."""
        if not self.runs(node_id):
            raise RuntimeError(f"node {node_id}: {self._failures.get(node_id, 'killed')}")
        return self.machine.is_active(node_id)

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._broker_connections is not None:
            self._broker_connections.close()
        await asyncio.gather(*self._stopping.values())
        await self._keys.close()
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

    async def _send(self, request: Message) -> Message | None:
        """Send a request to the controller, through a node that reaches the others."""
        number = next(self._request_numbers)
        response: asyncio.Future[Message | None] = self.loop.create_future()
        self._responses[number] = response
        try:
            self.handle(OperatorRequest(number, request))
            return await response
        finally:
            del self._responses[number]

    async def stop_broker(self, node_id: int) -> None:
        """Stop a broker in order: others lead its partitions before it stops."""
        self.handle(ShutDown(node_id))
        await until(lambda: not self.runs(node_id))
        await self._has_stopped(node_id)

    async def kill_broker(self, node_id: int) -> None:
        """End a broker at once."""
        self.handle(Killed(node_id))
        await self._stop_listener(node_id)
        await self.abort_connections(self._of(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped or killed, on its ports, with what its disks have.

        Raises StorageError, InvalidMetadataRecord, OSError or RuntimeError if it cannot start.
        """
        await self._has_stopped(node_id)
        with self._bound(self._of(node_id)) as sockets:
            self.handle(NodeStarted(node_id))
            await until(lambda: self._has_started(node_id))
        self._listen(sockets)

    async def _has_stopped(self, node_id: int) -> None:
        """Wait until a node that has stopped does not listen any more."""
        stopping = self._stopping.pop(node_id, None)
        if stopping is not None:
            await stopping

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
        """Carry out an effect that does not concern a connection of a client."""
        match effect:
            case NodeEffect():
                if isinstance(effect.effect, Stopped):
                    self._stopped(effect.node_id, effect.effect)
                elif self._broker_connections is not None:
                    self._broker_connections.perform(effect.effect)
                if self._on_effect is not None:
                    self._on_effect(effect)
            case OperatorResponse():
                response = self._responses.get(effect.number)
                if response is not None and not response.done():
                    response.set_result(effect.body)
            case LinkOpened() | LinkCarried() | LinkClosed():
                assert self.observers.recording is not None
                self.observers.recording.record_link(effect)

    def _stopped(self, node_id: int, effect: Stopped) -> None:
        """Close the listeners of a node that has stopped, as the end of its process does."""
        self._failures[node_id] = effect.failure or "stopped"
        stopping = self._stop_listener(node_id)
        self._stopping[node_id] = self.loop.create_task(stopping)
