"""Runs the nodes of a cluster on one event loop: each has logs, in memory, and ports of its own.

Law: a node is a process of its own but for its loop: what it sends to another one goes over a
socket, and what it has not written is lost when it is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...broker.effects import Report
from ...broker.releases import LATEST
from ...metadata import MetadataImage, PartitionRegistration
from ...node.front.options import FrontOptions
from ...storage import LogManager, MemoryDisk
from .invariants import ClusterInvariants, Running
from .member import Member
from .paced_server import PacedServer
from .start import (
    CONTROLLER,
    Controller,
    Identity,
    bound,
    broker_listeners,
    client_listener,
    node_config,
)

if TYPE_CHECKING:
    import ssl

HOST: Final = "127.0.0.1"
POLL: Final = 0.01
STEP: Final = 0.1
"""Seconds by which the clocks of all nodes are advanced at once, so that none lags behind."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a cluster is made of.

    nodes: how many. settings: of every node. directories: of each. ports, racks: of the nodes, in
    order; any port for those without.
    """

    nodes: int
    settings: dict[str, str]
    directories: int
    front: FrontOptions
    tls: ssl.SSLContext | None
    ports: Sequence[int]
    racks: Sequence[str]
    release: str = LATEST


class ClusterNodes:
    """The nodes of a cluster, those that run and those that do not.

    isolated: the nodes that reach no others.
    """

    def __init__(self, options: ClusterOptions) -> None:
        self._options = options
        self.client_listener = client_listener(options.settings, options.tls)
        self.members: dict[int, Member] = {}
        self.running: dict[int, PacedServer] = {}
        self.isolated: set[int] = set()
        self._invariants = ClusterInvariants()
        self._closing: set[asyncio.Future[None]] = set()

    async def begin(self) -> None:
        """Start all nodes; returns when they serve clients, and the topics exist."""
        directories = [f"disk-{number}" for number in range(1, self._options.directories + 1)]
        for node_id in range(1, self._options.nodes + 1):
            sockets = {name: bound(HOST, port) for name, port in self._wanted(node_id).items()}
            ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            for each in sockets.values():
                each.close()
            disks = {name: MemoryDisk() for name in directories}
            self.members[node_id] = Member(node_id, ports, disks)
        for node_id in self.members:
            await self.start(node_id)
        for node_id in self.members:
            await self.serving(node_id)
        while not self._is_complete(self.image()):
            await asyncio.sleep(POLL)

    def _is_complete(self, image: MetadataImage) -> bool:
        """Whether all nodes are active, and the topics exist."""
        active = sum(each.is_active for each in image.brokers.values())
        wanted = self._options.front.topics.keys()
        return active == self._options.nodes and image.topic_ids.keys() >= wanted

    def _wanted(self, node_id: int) -> dict[str, int]:
        """Return the ports of a node's listeners by name, 0 for any."""
        brokers = broker_listeners(self.client_listener, self._options.release)
        wanted = dict.fromkeys((*brokers, CONTROLLER), 0)
        if node_id <= len(self._options.ports):
            wanted[self.client_listener] = self._options.ports[node_id - 1]
        return wanted

    async def start(self, node_id: int) -> None:
        """Start a node, with what its disks have."""
        member = self.members[node_id]
        sockets = {name: bound(HOST, port) for name, port in member.ports.items()}
        controllers = [
            Controller(each.node_id, HOST, each.ports[CONTROLLER]) for each in self.members.values()
        ]
        rack = self._options.racks[node_id - 1 : node_id]
        settings = self._options.settings | ({"broker.rack": rack[0]} if rack else {})
        config = node_config(
            Identity(node_id), settings, controllers, sockets, self._options.release
        )
        server = PacedServer(
            config,
            member.disks,
            sockets,
            member.take_time,
            on_report=lambda report: self._reported(node_id, report),
            on_effect=lambda effect, _names: self._invariants.observe(node_id, effect),
            front=self._options.front,
            tls=self._options.tls,
        )
        member.starts += 1
        self.running[node_id] = server
        server.stopped.add_done_callback(lambda _: self._stopped(node_id, server))
        self.cut()
        await server.start()

    def _reported(self, node_id: int, report: Report) -> None:
        self._invariants.reported(self.running[node_id].front.broker.metadata.image, report)

    def _stopped(self, node_id: int, server: PacedServer) -> None:
        """Close the sockets of a node that cannot go on, as the end of its process does."""
        if self.running.get(node_id) is server and server.stopped.result().failure is not None:
            del self.running[node_id]
            closing = asyncio.ensure_future(server.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def serving(self, node_id: int) -> None:
        """Wait until a node serves clients. Raises RuntimeError if it stops before."""
        server = self.running[node_id]
        await server.serving()
        if server.stopped.done():
            raise RuntimeError(f"node {node_id}: {server.stopped.result().failure}")

    async def stop(self, node_id: int) -> None:
        """Stop a node in order."""
        server = self.running[node_id]
        server.shut_down()
        await server.stopped
        await self.kill(node_id)

    async def kill(self, node_id: int) -> None:
        """End a node at once."""
        await self.running.pop(node_id).close()

    def cut(self) -> None:
        """Let isolated nodes reach only themselves, and let the others not reach them."""
        for node_id, server in self.running.items():
            server.isolate(
                port
                for other in self.members.values()
                if other.node_id != node_id and {node_id, other.node_id} & self.isolated
                for port in other.ports.values()
            )

    async def advance(self, seconds: float) -> None:
        """Advance the clocks of all nodes."""
        while seconds > 0:
            step = min(STEP, seconds)
            seconds -= step
            for server in list(self.running.values()):
                server.advance(step)
            await asyncio.sleep(POLL)

    # -- what they have

    def logs(self, node_id: int) -> LogManager:
        """Return the logs of a node that runs."""
        broker = self.running[node_id].front.machines.node.parts.broker
        assert broker is not None
        return broker.logs

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        nodes = [
            Running(node_id, self.members[node_id].starts, server.front.machines.node)
            for node_id, server in self.running.items()
        ]
        self._invariants.check(nodes, self.image())

    def find(self, topic: str, partition: int) -> PartitionRegistration | None:
        """Find a partition in the newest metadata."""
        known = self.image().topic(topic)
        return None if known is None else known.partitions.get(partition)

    def image(self) -> MetadataImage:
        """Return the newest metadata of a node that runs and is not isolated."""
        nodes = [each for key, each in self.running.items() if key not in self.isolated]
        images = [each.front.broker.metadata.image for each in nodes]
        return max(images, key=lambda each: each.offset, default=MetadataImage())
