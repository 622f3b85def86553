"""Clusters in memory in threads of their own, for code without an event loop, such as tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..broker import Fault
from .fixture import TIMEOUT, ClusterFixture, NewTopic, PartitionState
from .server import Server
from .server_config import DEFAULT, ServerConfig

if TYPE_CHECKING:
    from ..node.composition import Disks
    from .server_recording import Recording


class ServerThread(ClusterFixture):
    """A cluster of nodes in memory, up in milliseconds: what they send each other takes no time.

    With `ServerConfig(zookeeper=True)` the brokers, of a release before 2.8, elect a controller,
    which connects to them: a recording has what they send each other.

    persisted: what another cluster had on its disks, to begin with that.
    """

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        *,
        recording: Recording | None = None,
        persisted: Disks | None = None,
    ) -> None:
        super().__init__(config, recording)
        self.server = Server(config, self._observers, disks=persisted)

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.close()

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def nodes(self) -> list[int]:
        return [each.node_id for each in self.server.endpoints if self.server.runs(each.node_id)]

    @property
    def persisted(self) -> Disks:
        """Copies of the disks of all brokers: what they would start with if killed now."""
        if self._thread.has_ended:
            return self.server.disks
        return self._thread.call(lambda: self.server.disks)

    def stop(self, node_id: int) -> None:
        """Stop a broker: others lead its partitions before it stops."""
        self._check_runs(node_id, True)
        self._thread.run(self.server.stop_broker(node_id))

    def kill(self, node_id: int) -> None:
        self._check_runs(node_id, True)
        self._thread.run(self.server.kill_broker(node_id))

    def start(self, node_id: int) -> None:
        self._check_runs(node_id, False)
        self._thread.run(self.server.start_broker(node_id))

    def advance(self, seconds: float) -> None:
        self._thread.call(lambda: self.server.advance(seconds))

    async def _create_topic(self, topic: NewTopic) -> None:
        await self.server.topics.create(topic)

    def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        self._check_runs(leader_id, True)
        self._thread.run(self.server.topics.move_leader(topic, partition, leader_id), TIMEOUT)

    def _find(self, topic: str, partition: int) -> PartitionState | None:
        state = self.server.topics.find(topic, partition)
        return None if state is None else PartitionState(state.leader, state.isr)

    def _add_fault(self, fault: Fault) -> None:
        self.server.faults.append(fault)

    def _clear_faults(self) -> None:
        self.server.faults.clear()
