"""Runs a cluster of nodes in a thread: each has its own logs, in memory, and its own ports.

Law: a node is a process of its own but for its thread: what it sends to another one goes over a
socket, and what it has not written is lost when it is killed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ...broker.bounds import DEFAULT_BOUNDS, Bounds
from ...broker.effects import Report
from ...metadata import MetadataImage, PartitionRegistration
from ...node.front.options import FrontOptions
from ...storage import LogManager, MemoryDisk, TopicPartition
from ..loop_thread import LoopThread
from .invariants import ClusterInvariants, Running
from .member import Member
from .paced_server import PacedServer
from .start import BROKER, CONTROLLER, Controller, Identity, bound, client_listener, node_config

if TYPE_CHECKING:
    import ssl

HOST: Final = "127.0.0.1"
TIMEOUT: Final = 60.0
"""Seconds that the cluster may take for anything, on a machine that is busy."""
POLL: Final = 0.01
STEP: Final = 0.1
"""Seconds by which the clocks of all nodes are advanced at once, so that none lags behind."""
QUICK: Final = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.append.linger.ms": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "3",
}
"""Default settings of a cluster in tests: failures are noticed soon."""


class ClusterThread:
    """A cluster of nodes that are brokers and controllers, for clients of this process or others.

    settings: Kafka's keys, of every node. directories: how many log directories each has, each on a
    disk of its own: `disk-1`, `disk-2`, ... topics, passwords, tls, ports, racks, bounds: as of
    `ServerConfig`.
    """

    def __init__(  # noqa: PLR0913 - options by name
        self,
        nodes: int = 3,
        settings: Mapping[str, str] = {},
        *,
        directories: int = 1,
        topics: Mapping[str, int] = {},
        passwords: Mapping[str, str] = {},
        tls: ssl.SSLContext | None = None,
        ports: Sequence[int] = (),
        racks: Sequence[str] = (),
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._settings = {"default.replication.factor": str(nodes)} | QUICK | dict(settings)
        self._front = FrontOptions(passwords, topics, bounds)
        self._tls = tls
        self._client_listener = client_listener(self._settings, tls)
        self._ports = ports
        self._racks = racks
        self._count = nodes
        self._directories = [f"disk-{number}" for number in range(1, directories + 1)]
        self._members: dict[int, Member] = {}
        self._running: dict[int, PacedServer] = {}
        self._invariants = ClusterInvariants()
        self._isolated: set[int] = set()
        self._closing: set[asyncio.Future[None]] = set()
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._thread.run(self._begin(), TIMEOUT)
        except BaseException:
            self._thread.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for node_id in list(self._running):
                self.kill(node_id)
        finally:
            self._thread.end()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`, of all nodes."""
        return ",".join(f"{HOST}:{port}" for port in self.ports().values())

    def ports(self, listener: str | None = None) -> dict[int, int]:
        """Return the ports of all nodes by id. listener: its name; None for that of clients."""
        name = listener or self._client_listener
        return {each.node_id: each.ports[name] for each in self._members.values()}

    @property
    def nodes(self) -> list[int]:
        """The ids of the nodes that run."""
        return list(self._running)

    # -- nodes

    def stop(self, node_id: int) -> None:
        """Stop a node in order: others lead its partitions before it is gone."""
        self._thread.run(self._stop(node_id), TIMEOUT)

    def kill(self, node_id: int) -> None:
        """End a node at once, as `kill -9` does."""
        self._thread.run(self._kill(node_id), TIMEOUT)

    def start(self, node_id: int) -> None:
        """Start a node that was stopped or killed; returns when it serves clients."""
        self._thread.run(self._start(node_id), TIMEOUT)
        self._thread.run(self._serving(node_id), TIMEOUT)

    def isolate(self, node_id: int) -> None:
        """Cut the connections between a node and the others; clients still reach it."""
        self._isolated.add(node_id)
        self._thread.call(self._cut)

    def heal(self) -> None:
        """Let all nodes reach each other again."""
        self._isolated.clear()
        self._thread.call(self._cut)

    def advance(self, seconds: float) -> None:
        """Advance the clocks of all nodes, without waiting."""
        self._thread.run(self._advance(seconds), TIMEOUT)

    # -- disks

    def slow_disk(self, node_id: int, seconds: float, directory: str | None = None) -> None:
        """Let each write of a node's disk, or of all its disks, take so long."""
        self._thread.call(lambda: self._members[node_id].slow(seconds, directory))

    def full_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let a disk of a node, or all of them, be full: its directory fails with the next write.

        A node stops when its first directory fails.
        """
        self._thread.call(lambda: self._members[node_id].fill(directory))

    def fail_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let all operations of a disk of a node fail, or of all its disks."""
        self._thread.call(lambda: self._members[node_id].fail(directory))

    def repair_disks(self, node_id: int) -> None:
        """Let all disks of a node work again; a directory that has failed, once it restarts."""
        self._thread.call(self._members[node_id].repair)

    def directory(self, topic: str, node_id: int, partition: int = 0) -> str | None:
        """Return the log directory of a replica; None if the node has none."""
        at = TopicPartition(topic, partition)
        found = self._thread.call(lambda: self._logs(node_id).directory_of(at))
        return None if found is None else found.name

    def offline_directories(self, node_id: int) -> dict[str, str]:
        """Return the log directories of a node that have failed, with the reasons."""
        return self._thread.call(lambda: self._logs(node_id).offline_directories)

    def _logs(self, node_id: int) -> LogManager:
        broker = self._running[node_id].front.machines.node.parts.broker
        assert broker is not None
        return broker.logs

    def invariants(self) -> None:
        """Check what must hold at any time, on the nodes that run; AssertionError if it does not.

        One leader of each epoch; what was acknowledged with acks=all is where it was; the logs of
        in-sync replicas agree below the high watermark; all nodes have the same metadata.
        """
        self._thread.call(self._check)

    def _check(self) -> None:
        nodes = [
            Running(node_id, self._members[node_id].starts, server.front.machines.node)
            for node_id, server in self._running.items()
        ]
        self._invariants.check(nodes, self._image())

    # -- metadata

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition, when it has one that runs."""
        return self._registration(topic, partition, lambda it: it.leader in self._running).leader

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """Return the in-sync replicas of a partition."""
        return sorted(self._registration(topic, partition, lambda _: True).isr)

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until something is true. Raises TimeoutError."""
        end = time.monotonic() + TIMEOUT
        while not done():
            if time.monotonic() > end:
                raise TimeoutError("it did not happen in time")
            time.sleep(POLL)

    def _registration(
        self, topic: str, partition: int, fits: Callable[[PartitionRegistration], bool]
    ) -> PartitionRegistration:
        found: list[PartitionRegistration] = []

        def known() -> bool:
            each = self._thread.call(lambda: self._find(topic, partition))
            if each is not None and fits(each):
                found.append(each)
            return bool(found)

        self.wait(known)
        return found[0]

    def _find(self, topic: str, partition: int) -> PartitionRegistration | None:
        known = self._image().topic(topic)
        return None if known is None else known.partitions.get(partition)

    def _image(self) -> MetadataImage:
        """Return the newest metadata of a node that runs and is not isolated."""
        nodes = [each for key, each in self._running.items() if key not in self._isolated]
        images = [each.front.broker.metadata.image for each in nodes]
        return max(images, key=lambda each: each.offset, default=MetadataImage())

    # -- in the loop

    async def _begin(self) -> None:
        for node_id in range(1, self._count + 1):
            sockets = {name: bound(HOST, port) for name, port in self._wanted(node_id).items()}
            ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            for each in sockets.values():
                each.close()
            disks = {name: MemoryDisk() for name in self._directories}
            self._members[node_id] = Member(node_id, ports, disks)
        for node_id in self._members:
            await self._start(node_id)
        for node_id in self._members:
            await self._serving(node_id)
        while not self._is_complete(self._image()):
            await asyncio.sleep(POLL)

    def _is_complete(self, image: MetadataImage) -> bool:
        """Whether all nodes are active, and the topics exist."""
        active = sum(each.is_active for each in image.brokers.values())
        return active == self._count and image.topic_ids.keys() >= self._front.topics.keys()

    def _wanted(self, node_id: int) -> dict[str, int]:
        """Return the ports of a node's listeners by name, 0 for any."""
        wanted = dict.fromkeys((BROKER, self._client_listener, CONTROLLER), 0)
        if node_id <= len(self._ports):
            wanted[self._client_listener] = self._ports[node_id - 1]
        return wanted

    async def _start(self, node_id: int) -> None:
        member = self._members[node_id]
        sockets = {name: bound(HOST, port) for name, port in member.ports.items()}
        controllers = [
            Controller(each.node_id, HOST, each.ports[CONTROLLER])
            for each in self._members.values()
        ]
        rack = self._racks[node_id - 1 : node_id]
        settings = self._settings | ({"broker.rack": rack[0]} if rack else {})
        config = node_config(Identity(node_id), settings, controllers, sockets)
        server = PacedServer(
            config,
            member.disks,
            sockets,
            member.take_time,
            on_report=lambda report: self._reported(node_id, report),
            on_effect=lambda effect, _names: self._invariants.observe(node_id, effect),
            front=self._front,
            tls=self._tls,
        )
        member.starts += 1
        self._running[node_id] = server
        server.stopped.add_done_callback(lambda _: self._stopped(node_id, server))
        self._cut()
        await server.start()

    def _reported(self, node_id: int, report: Report) -> None:
        self._invariants.reported(self._running[node_id].front.broker.metadata.image, report)

    def _stopped(self, node_id: int, server: PacedServer) -> None:
        """Close the sockets of a node that cannot go on, as the end of its process does."""
        if self._running.get(node_id) is server and server.stopped.result().failure is not None:
            del self._running[node_id]
            closing = asyncio.ensure_future(server.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _serving(self, node_id: int) -> None:
        server = self._running[node_id]
        await server.serving()
        if server.stopped.done():
            raise RuntimeError(f"node {node_id}: {server.stopped.result().failure}")

    async def _stop(self, node_id: int) -> None:
        server = self._running[node_id]
        server.shut_down()
        await server.stopped
        await self._kill(node_id)

    async def _kill(self, node_id: int) -> None:
        await self._running.pop(node_id).close()

    def _cut(self) -> None:
        """Let isolated nodes reach only themselves, and let the others not reach them."""
        for node_id, server in self._running.items():
            server.isolate(
                port
                for other in self._members.values()
                if other.node_id != node_id and {node_id, other.node_id} & self._isolated
                for port in other.ports.values()
            )

    async def _advance(self, seconds: float) -> None:
        while seconds > 0:
            step = min(STEP, seconds)
            seconds -= step
            for server in list(self._running.values()):
                server.advance(step)
            await asyncio.sleep(POLL)
