"""A cluster with a ZooKeeper-era controller in a thread of its own, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..broker import Fault, Persisted
from .fixture import ClusterFixture, NewTopic, PartitionState
from .server_config import DEFAULT, ServerConfig
from .zookeeper_server import ZooKeeperServer

if TYPE_CHECKING:
    from .server_recording import Recording


class ZooKeeperThread(ClusterFixture):
    """Brokers of a release before 2.8: one machine plays all of them, and their controller.

    persisted: the effects to persist; pass them to another one as `persisted` to restore the
    cluster.
    """

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        *,
        recording: Recording | None = None,
        persisted: Iterable[Persisted] = (),
    ) -> None:
        config.refuse("directories", "a cluster in memory has no log directories")
        super().__init__(config, recording)
        self.persisted: list[Persisted] = [*persisted]
        self.server = ZooKeeperServer(
            config,
            self._observers,
            on_persist=self.persisted.append,
            persisted=tuple(self.persisted),
        )

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.close()

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def nodes(self) -> list[int]:
        return sorted(self.server.cluster.topics.alive)

    def stop(self, node_id: int) -> None:
        """Stop a broker; with ZooKeeper, the controller moves its leaders away first."""
        self._check_runs(node_id, True)
        self._thread.run(self.server.stop_broker(node_id))

    def kill(self, node_id: int) -> None:
        """Stop a broker without notice."""
        self._check_runs(node_id, True)
        self._thread.run(self.server.kill_broker(node_id))

    def start(self, node_id: int) -> None:
        self._check_runs(node_id, False)
        self._thread.run(self.server.start_broker(node_id))

    def advance(self, seconds: float) -> None:
        self._thread.call(lambda: self.server.advance(seconds))

    async def _create_topic(self, topic: NewTopic) -> None:
        self.server.create_topic(*topic)

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        """Let another broker lead a partition. truncate_to: makes the election unclean."""
        self._thread.call(lambda: self.server.move_leader(topic, partition, leader_id, truncate_to))

    def _find(self, topic: str, partition: int) -> PartitionState | None:
        state = self.server.cluster.topics.partition(topic, partition)
        return None if state is None else PartitionState(state.leader_id, state.isr)

    def _add_fault(self, fault: Fault) -> None:
        self.server.cluster.faults.append(fault)

    def _clear_faults(self) -> None:
        self.server.cluster.faults.clear()
