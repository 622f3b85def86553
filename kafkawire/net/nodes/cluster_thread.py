"""Runs a cluster of nodes in a thread, for tests.

Law: methods return when what they do is done; TimeoutError after a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ...broker.bounds import DEFAULT_BOUNDS, Bounds
from ...broker.releases import LATEST
from ...metadata import PartitionRegistration
from ...node.front.options import FrontOptions
from ...storage import TopicPartition
from ..loop_thread import LoopThread
from .cluster_nodes import HOST, POLL, ClusterNodes, ClusterOptions

if TYPE_CHECKING:
    import ssl

TIMEOUT: Final = 60.0
"""Seconds that the cluster may take for anything, on a machine that is busy."""
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
    disk of its own: `disk-1`, `disk-2`, ... topics, passwords, tls, ports, racks, bounds, release:
    as of `ServerConfig`.
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
        release: str = LATEST,
    ) -> None:
        given = {"default.replication.factor": str(nodes)} | QUICK | dict(settings)
        front = FrontOptions(passwords, topics, bounds)
        options = ClusterOptions(nodes, given, directories, front, tls, ports, racks, release)
        self._nodes = ClusterNodes(options)
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._thread.run(self._nodes.begin(), TIMEOUT)
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
            for node_id in list(self._nodes.running):
                self.kill(node_id)
        finally:
            self._thread.end()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`, of all nodes."""
        return ",".join(f"{HOST}:{port}" for port in self.ports().values())

    def ports(self, listener: str | None = None) -> dict[int, int]:
        """Return the ports of all nodes by id. listener: its name; None for that of clients."""
        name = listener or self._nodes.client_listener
        return {each.node_id: each.ports[name] for each in self._nodes.members.values()}

    @property
    def nodes(self) -> list[int]:
        """The ids of the nodes that run."""
        return list(self._nodes.running)

    # -- nodes

    def stop(self, node_id: int) -> None:
        """Stop a node in order: others lead its partitions before it stops."""
        self._thread.run(self._nodes.stop(node_id), TIMEOUT)

    def kill(self, node_id: int) -> None:
        """End a node at once, as `kill -9` does."""
        self._thread.run(self._nodes.kill(node_id), TIMEOUT)

    def start(self, node_id: int) -> None:
        """Start a node that was stopped or killed; returns when it serves clients."""
        self._thread.run(self._nodes.start(node_id), TIMEOUT)
        self._thread.run(self._nodes.serving(node_id), TIMEOUT)

    def isolate(self, node_id: int) -> None:
        """Cut the connections between a node and the others; clients still reach it."""
        self._nodes.isolated.add(node_id)
        self._thread.call(self._nodes.cut)

    def heal(self) -> None:
        """Let all nodes reach each other again."""
        self._nodes.isolated.clear()
        self._thread.call(self._nodes.cut)

    def advance(self, seconds: float) -> None:
        """Advance the clocks of all nodes, without waiting."""
        self._thread.run(self._nodes.advance(seconds), TIMEOUT)

    # -- disks

    def slow_disk(self, node_id: int, seconds: float, directory: str | None = None) -> None:
        """Let each write of a node's disk, or of all its disks, take so long."""
        self._thread.call(lambda: self._nodes.members[node_id].slow(seconds, directory))

    def full_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let a disk of a node, or all of them, be full: its directory fails with the next write.

        A node stops when its first directory fails.
        """
        self._thread.call(lambda: self._nodes.members[node_id].fill(directory))

    def fail_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let all operations of a disk of a node fail, or of all its disks."""
        self._thread.call(lambda: self._nodes.members[node_id].fail(directory))

    def repair_disks(self, node_id: int) -> None:
        """Let all disks of a node work again; a directory that has failed, once it restarts."""
        self._thread.call(self._nodes.members[node_id].repair)

    def directory(self, topic: str, node_id: int, partition: int = 0) -> str | None:
        """Return the log directory of a replica; None if the node has none."""
        at = TopicPartition(topic, partition)
        found = self._thread.call(lambda: self._nodes.logs(node_id).directory_of(at))
        return None if found is None else found.name

    def offline_directories(self, node_id: int) -> dict[str, str]:
        """Return the log directories of a node that have failed, with the reasons."""
        return self._thread.call(lambda: self._nodes.logs(node_id).offline_directories)

    def invariants(self) -> None:
        """Check what must hold at any time, on the nodes that run; AssertionError if it does not.

        One leader of each epoch; what was acknowledged with acks=all is where it was; the logs of
        in-sync replicas agree below the high watermark; all nodes have the same metadata.
        """
        self._thread.call(self._nodes.check)

    # -- metadata

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition, when it has one that runs."""
        running = self._nodes.running
        return self._registration(topic, partition, lambda it: it.leader in running).leader

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
            each = self._thread.call(lambda: self._nodes.find(topic, partition))
            if each is not None and fits(each):
                found.append(each)
            return bool(found)

        self.wait(known)
        return found[0]
