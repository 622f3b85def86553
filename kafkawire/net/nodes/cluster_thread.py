"""A cluster of nodes in a thread of its own, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...broker import Fault
from ...node.composition import Disks
from ...storage import TopicPartition
from ..fixture import TIMEOUT, ClusterFixture, NewTopic, PartitionState
from ..server_config import QUICK, ServerConfig
from .cluster_nodes import ClusterNodes

if TYPE_CHECKING:
    from ..server_recording import Recording

SOON: Final = {
    **QUICK,
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.append.linger.ms": "1",
    "offsets.topic.num.partitions": "3",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "3",
}
"""Default settings of a cluster in tests: failures are noticed soon."""


THREE: Final = ServerConfig(brokers=3)


class ClusterThread(ClusterFixture):
    """A cluster of nodes that are brokers and controllers, with logs of their own in memory.

    config: its settings take precedence over `SOON`; replication factors are the number of brokers
    unless it sets them. persisted: what another cluster had on its disks, to begin with that.
    """

    def __init__(
        self,
        config: ServerConfig = THREE,
        *,
        recording: Recording | None = None,
        persisted: Disks | None = None,
    ) -> None:
        config.refuse("zookeeper", "nodes have a KRaft quorum")
        unknown = (persisted or {}).keys() - set(range(1, config.brokers + 1))
        if unknown:
            raise ValueError(f"persisted: of brokers {sorted(unknown)}; there are {config.brokers}")
        factor = {"default.replication.factor": str(config.brokers)}
        config = replace(config, settings={**factor, **SOON, **config.settings})
        super().__init__(config, recording)
        self._nodes = ClusterNodes(config, self._observers, persisted or {})

    async def _open(self) -> None:
        await self._nodes.begin()

    async def _close(self) -> None:
        await self._nodes.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.config.host}:{port}" for port in self.ports().values())

    def ports(self, listener: str | None = None) -> dict[int, int]:
        """Return the ports of all nodes by id. listener: its name; None for that of clients."""
        name = listener or self._nodes.client_listener
        return {each.node_id: each.ports[name] for each in self._nodes.members.values()}

    @property
    def nodes(self) -> list[int]:
        return list(self._nodes.running)

    @property
    def persisted(self) -> Disks:
        """A copy of what all nodes have on their disks now, as if all were killed at once."""
        if self._thread.has_ended:
            return self._nodes.disks()
        return self._thread.call(self._nodes.disks)

    # -- nodes

    def stop(self, node_id: int) -> None:
        """Stop a node in order: others lead its partitions before it stops."""
        self._check_runs(node_id, True)
        self._thread.run(self._nodes.stop(node_id), TIMEOUT)

    def kill(self, node_id: int) -> None:
        self._check_runs(node_id, True)
        self._thread.run(self._nodes.kill(node_id), TIMEOUT)

    def start(self, node_id: int) -> None:
        self._check_runs(node_id, False)
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
        self._thread.run(self._nodes.advance(seconds), TIMEOUT)

    # -- topics

    async def _create_topic(self, topic: NewTopic) -> None:
        await self._nodes.topics.create(topic)

    def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Reassign a partition so that a node is its preferred leader, and elect it."""
        self._check_runs(leader_id, True)
        self._thread.run(self._nodes.topics.move_leader(topic, partition, leader_id), TIMEOUT)

    def _find(self, topic: str, partition: int) -> PartitionState | None:
        state = self._nodes.topics.find(topic, partition)
        return None if state is None else PartitionState(state.leader, state.isr)

    # -- faults

    def _add_fault(self, fault: Fault) -> None:
        self._nodes.add_fault(fault)

    def _clear_faults(self) -> None:
        self._nodes.clear_faults()

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
        replica = TopicPartition(topic, partition)
        directory = self._thread.call(lambda: self._nodes.logs(node_id).directory_of(replica))
        return None if directory is None else directory.name

    def offline_directories(self, node_id: int) -> dict[str, str]:
        """Return the log directories of a node that have failed, with the reasons."""
        return self._thread.call(lambda: self._nodes.logs(node_id).offline_directories)

    def invariants(self) -> None:
        """Check what must hold at any time, on the nodes that run; AssertionError if it does not.

        One leader of each epoch; what was acknowledged with acks=all is where it was; the logs of
        in-sync replicas agree below the high watermark; all nodes have the same metadata.
        """
        self._thread.call(self._nodes.check)
