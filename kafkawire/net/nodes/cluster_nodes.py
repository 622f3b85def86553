"""Runs the nodes of a cluster on one event loop: each has logs, in memory, and ports of its own.

A node is a process of its own but for its loop: what it sends to another one goes over a socket,
and what it has not written is lost when it is killed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...broker import Fault
from ...broker.effects import Report
from ...metadata import MetadataImage
from ...node.composition import Disks
from ...node.properties import CONTROLLER, Identity, node_config
from ...primitives import Message
from ...storage import LogManager, MemoryDisk
from ..fixture import POLL
from ..server_config import ServerConfig
from ..shell import Observers, bound
from .invariants import ClusterInvariants, Running
from .member import Member
from .paced_server import PacedServer
from .start import (
    Controller,
    broker_listeners,
    client_listener,
    endpoints_of,
    front_options,
    voter_set,
)
from .topics import ClusterTopics, until

if TYPE_CHECKING:
    import socket

STEP: Final = 0.1
"""Seconds by which the clocks of all nodes are advanced at once, so that none lags behind."""


class ClusterNodes:
    """The nodes of a cluster, those that run and those that do not.

    disks: those of an earlier cluster, to begin with. isolated: the nodes that reach no others.
    """

    def __init__(self, config: ServerConfig, observers: Observers, disks: Disks) -> None:
        self._config = config
        self._observers = observers
        self._disks = disks
        self._front = front_options(config)
        self.client_listener = client_listener(config)
        self.members: dict[int, Member] = {}
        self.running: dict[int, PacedServer] = {}
        self.isolated: set[int] = set()
        self.topics = ClusterTopics(self._send, self._images)
        self._faults: list[Fault] = []
        self._invariants = ClusterInvariants()
        self._closing: set[asyncio.Future[None]] = set()

    async def begin(self) -> None:
        """Start all nodes; returns when they serve clients, and the topics exist."""
        for node_id in range(1, self._config.brokers + 1):
            with ExitStack() as opened:
                sockets = self._bound(self._wanted(node_id), opened)
                ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            self.members[node_id] = Member(node_id, ports, self._disks_of(node_id))
        for node_id in self.members:
            await self.start(node_id)
        for node_id in self.members:
            await self.serving(node_id)
        await until(self._is_complete)

    def _is_complete(self) -> bool:
        """Whether all nodes are active, and the topics exist."""
        image = self.topics.image()
        active = sum(each.is_active for each in image.brokers.values())
        wanted = self._config.topics.keys()
        return active == self._config.brokers and image.topic_ids.keys() >= wanted

    def _disks_of(self, node_id: int) -> Mapping[str, MemoryDisk]:
        """Return the disks of a node: what an earlier one had on them, or empty ones."""
        earlier = self._disks.get(node_id, {})
        names = [f"disk-{number}" for number in range(1, self._config.directories + 1)]
        return {name: deepcopy(earlier.get(name)) or MemoryDisk() for name in names}

    def _wanted(self, node_id: int) -> dict[str, int]:
        """Return the ports of a node's listeners by name, 0 for any."""
        brokers = broker_listeners(self.client_listener, self._config.release)
        wanted = dict.fromkeys((*brokers, CONTROLLER), 0)
        if node_id <= len(self._config.ports):
            wanted[self.client_listener] = self._config.ports[node_id - 1]
        return wanted

    def _bound(self, ports: Mapping[str, int], opened: ExitStack) -> dict[str, socket.socket]:
        """Bind the sockets of a node's listeners; `opened` closes them."""
        host = self._config.host
        return {name: opened.enter_context(bound(host, port)) for name, port in ports.items()}

    async def start(self, node_id: int) -> None:
        """Start a node, with what its disks have."""
        member = self.members[node_id]
        with ExitStack() as opened:
            server = self._server(member, self._bound(member.ports, opened))
            opened.pop_all()  # they are the server's
        member.starts += 1
        self.running[node_id] = server
        server.stopped.add_done_callback(lambda _: self._stopped(node_id, server))
        self.cut()
        await server.start()

    def _server(self, member: Member, sockets: Mapping[str, socket.socket]) -> PacedServer:
        node_id, host = member.node_id, self._config.host
        controllers = [
            Controller(each.node_id, host, each.ports[CONTROLLER]) for each in self.members.values()
        ]
        rack = self._config.racks[node_id - 1 : node_id]
        settings = {**self._config.settings, **({"broker.rack": rack[0]} if rack else {})}
        config = node_config(
            Identity(node_id),
            settings,
            voter_set(controllers),
            endpoints_of(sockets),
            int(time.time() * 1000),
            bounds=self._config.bounds,
            release=self._config.release,
        )
        server = PacedServer(
            config,
            member.disks,
            sockets,
            member.take_time,
            observers=replace(
                self._observers, on_report=lambda report: self._reported(node_id, report)
            ),
            on_effect=lambda effect, _names: self._invariants.observe(node_id, effect),
            front=self._front,
            tls=self._config.tls,
            rng=self._rng(member),
        )
        server.faults.extend(self._faults)
        return server

    def _rng(self, member: Member) -> random.Random:
        """Return the random numbers of a node: others at each start, as its ids are new then."""
        seed = self._config.seed
        if seed is None:
            return random.SystemRandom()
        return random.Random(f"{seed} {member.node_id} {member.starts}")

    def _reported(self, node_id: int, report: Report) -> None:
        if self._observers.on_report is not None and not report.request.is_from_node:
            self._observers.on_report(report)
        self._invariants.reported(_image(self.running[node_id]), report)

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

    async def close(self) -> None:
        """End all nodes at once."""
        for node_id in list(self.running):
            await self.kill(node_id)
        if self._observers.recording is not None:
            self._observers.recording.close()

    # -- faults

    def add_fault(self, fault: Fault) -> None:
        """Inject a fault into the requests to all nodes, also to those that start later."""
        self._faults.append(fault)
        for server in self.running.values():
            server.faults.append(fault)

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._faults.clear()
        for server in self.running.values():
            server.faults.clear()

    # -- metadata

    async def _send(self, request: Message) -> Message | None:
        """Send a request to the controller, through a node that reaches the others."""
        servers = self._reachable()
        return await servers[0].request(request) if servers else None

    def _reachable(self) -> list[PacedServer]:
        return [each for key, each in self.running.items() if key not in self.isolated]

    def _images(self) -> list[MetadataImage]:
        return [_image(each) for each in self._reachable()]

    # -- what they have

    def disks(self) -> Disks:
        """Return copies of the disks of all nodes, as they are now."""
        return {each.node_id: deepcopy(each.disks) for each in self.members.values()}

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
        self._invariants.check(nodes, self.topics.image())


def _image(server: PacedServer) -> MetadataImage:
    return server.front.broker.metadata.image
