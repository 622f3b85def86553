"""Clusters in threads of their own, for code without an event loop, such as tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ..broker import Fault, Report
from ..node.local_cluster import Isolated, NodeEffect
from ..storage import LogManager, TopicPartition
from .fixture import ClusterFixture, check_seconds
from .nodes.invariants import ClusterInvariants, Running
from .nodes.leader_logs import leader_log
from .partitions import NewTopic, PartitionState, StoredBatches
from .server import Server
from .server_config import DEFAULT, ServerConfig

if TYPE_CHECKING:
    from ..node.composition import Disks
    from ..node.local_node import LocalNode
    from .brokers.recording import Recording


class ServerThread(ClusterFixture):
    """A cluster of nodes in memory, up in milliseconds: what they send each other takes no time.

    With `ServerConfig(zookeeper=True)` the brokers, of a release before 2.8, elect a controller,
    which connects to them: a recording has what they send each other.

    persisted: what another cluster had on its disks, to begin with that.
    """

    combined: ClassVar = False
    """Whether each broker is a controller, too, and votes."""

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        *,
        recording: Recording | None = None,
        persisted: Disks | None = None,
    ) -> None:
        super().__init__(config, recording)
        self._invariants = ClusterInvariants()
        self._isolated: frozenset[int] = frozenset()
        self.server = Server(
            config,
            replace(self._observers, on_report=self._reported),
            disks=persisted,
            combined=self.combined,
            on_effect=self._observe,
        )

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.close()

    def _reported(self, report: Report) -> None:
        self.requests.append(report)
        self._invariants.reported(report, self.server.machine.image)

    def _observe(self, effect: NodeEffect) -> None:
        self._invariants.observe(effect.node_id, effect.effect)

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    def bootstrap_servers(self, listener: str) -> str:
        """Return the bootstrap servers of a listener.

        Raises ValueError for a listener that has no ports.
        """
        self.ports(listener)
        return self.server.bootstrap_servers(listener)

    def ports(self, listener: str | None = None) -> dict[int, int]:
        """Return the ports of all brokers by id. listener: its name; None for that of clients.

        Raises ValueError for a listener that has no ports.
        """
        name = listener or self.server.client_listener
        names = dict.fromkeys(each.name for each in self.server.listeners)
        if name not in names:
            raise ValueError(f"no listener {name!r}: {', '.join(names)}")
        return {
            each.endpoint.node_id: each.endpoint.port
            for each in self.server.listeners
            if each.name == name
        }

    @property
    def nodes(self) -> list[int]:
        if self._thread.has_ended:
            return []
        return [each.node_id for each in self.server.endpoints if self.server.runs(each.node_id)]

    @property
    def persisted(self) -> Disks:
        """Copies of the disks of all brokers: what they would start with if killed now."""
        if self._thread.has_ended:
            return self.server.disks
        return self._thread.call(lambda: self.server.disks)

    # -- brokers

    def stop(self, node_id: int) -> None:
        """Stop a broker: others lead its partitions before it stops."""
        self._check_runs(node_id, True)
        self._run(self.server.stop_broker(node_id), f"broker {node_id} has not stopped")

    def kill(self, node_id: int) -> None:
        self._check_runs(node_id, True)
        self._run(self.server.kill_broker(node_id), f"broker {node_id} has not ended")

    def start(self, node_id: int) -> None:
        self._check_runs(node_id, False)
        self._run(self.server.start_broker(node_id), f"broker {node_id} has not started")

    def isolate(self, node_id: int) -> None:
        """Cut the connections between a broker and the other nodes; clients still reach it."""
        self._check_exists(node_id)
        self._set_isolated(self._isolated | {node_id})

    def heal(self) -> None:
        """Let all nodes reach each other again."""
        self._set_isolated(frozenset())

    def _set_isolated(self, nodes: frozenset[int]) -> None:
        self._isolated = nodes
        self._thread.call(lambda: self.server.handle(Isolated(nodes)))

    def _advance(self, seconds: float) -> None:
        self._thread.call(lambda: self.server.advance(seconds))

    # -- topics

    async def _create_topic(self, topic: NewTopic) -> None:
        await self.server.topics.create(topic)

    def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Reassign a partition so that a broker is its preferred leader, and elect it."""
        self._check_runs(leader_id, True)
        self._partitions(topic, partition)
        moving = self.server.topics.move_leader(topic, partition, leader_id)
        self._run(moving, f"broker {leader_id} does not lead {topic}-{partition}")

    def _find(self, topic: str, partition: int) -> PartitionState | None:
        state = self.server.topics.find(topic, partition)
        return None if state is None else PartitionState(state.leader, state.isr, state.replicas)

    def _topic_names(self) -> list[str]:
        return list(self.server.machine.image().topic_ids)

    def _leader_log(self, topic: str, partition: int) -> StoredBatches | None:
        machine = self.server.machine
        nodes = [each.machines.node for each in machine.fronts.values()]
        return leader_log(nodes, machine.image(), topic, partition)

    # -- faults

    def _add_fault(self, fault: Fault) -> None:
        self.server.faults.append(fault)

    def _clear_faults(self) -> None:
        self.server.faults.clear()

    # -- disks

    def slow_disk(self, node_id: int, seconds: float, directory: str | None = None) -> None:
        """Let each write to a disk of a broker, or to all its disks, take so long."""
        check_seconds(seconds)
        self._thread.call(lambda: self._node(node_id).slow(seconds, directory))

    def full_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let a disk of a broker, or all of them, be full: its directory fails with the next write.

        A broker stops when its first directory fails.
        """
        self._thread.call(lambda: self._node(node_id).fill(directory))

    def fail_disk(self, node_id: int, directory: str | None = None) -> None:
        """Let all operations of a disk of a broker fail, or of all its disks."""
        self._thread.call(lambda: self._node(node_id).fail(directory))

    def repair_disks(self, node_id: int) -> None:
        """Let all disks of a broker work again; a directory that has failed, once it restarts."""
        self._thread.call(lambda: self._node(node_id).repair())

    def directory(self, topic: str, node_id: int, partition: int = 0) -> str | None:
        """Return the log directory of a replica; None if the broker has none."""
        replica = TopicPartition(topic, partition)
        directory = self._thread.call(lambda: self._logs(node_id).directory_of(replica))
        return None if directory is None else directory.name

    def offline_directories(self, node_id: int) -> dict[str, str]:
        """Return the log directories of a broker that have failed, with the reasons."""
        return self._thread.call(lambda: self._logs(node_id).offline_directories)

    def _node(self, node_id: int) -> LocalNode:
        """Return a broker, whether it runs or not."""
        self._check_exists(node_id)
        return self.server.machine.nodes[node_id]

    def _logs(self, node_id: int) -> LogManager:
        """Return the logs of a broker that runs."""
        self._check_runs(node_id, True)
        broker = self.server.machine.front(node_id).machines.node.parts.broker
        assert broker is not None
        return broker.logs

    # -- invariants

    def invariants(self) -> None:
        """Check what must hold at any time, on the nodes that run; AssertionError if it does not.

        One leader of each epoch; what was acknowledged with acks=all is where it was; the logs of
        in-sync replicas agree below the high watermark; all nodes have the same metadata.
        """
        self._thread.call(self._check_invariants)

    def _check_invariants(self) -> None:
        machine = self.server.machine
        nodes = [
            Running(node_id, machine.nodes[node_id].starts, front.machines.node)
            for node_id, front in machine.fronts.items()
        ]
        self._invariants.check(nodes, machine.image())
