"""What the brokers of a cluster keep in ZooKeeper: registrations, the controller, partition states.

Law: each write gets the next transaction id (zxid). A broker's epoch is that of its registration,
so a broker that started again has a higher one; each controller has a higher controller epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..topics import Partition

FIRST_ZXID: Final = 24
"""That of the first broker of an empty ensemble, as recordings of Kafka 2.2 to 2.7 show it."""


@dataclass(slots=True)
class PartitionState:
    """The state of a partition.

    controller_epoch: of the controller that wrote it last; zk_version: how often it was written
    before.
    """

    controller_epoch: int
    zk_version: int = 0


class Registry:
    """The nodes in ZooKeeper: brokers by id, the controller and its epoch, partitions."""

    def __init__(self) -> None:
        self.broker_epochs: dict[int, int] = {}
        self.controller_id: int | None = None
        self.controller_epoch = 0
        self._zxid = FIRST_ZXID - 1
        self._partitions: dict[tuple[str, int], PartitionState] = {}

    @property
    def partition_count(self) -> int:
        """The number of partitions with a state."""
        return len(self._partitions)

    def _write(self) -> int:
        self._zxid += 1
        return self._zxid

    def register(self, node_id: int) -> None:
        """Register a broker; it gets a new epoch."""
        self.broker_epochs[node_id] = self._write()

    def unregister(self, node_id: int) -> None:
        """Remove a broker whose session has ended."""
        self.broker_epochs.pop(node_id, None)
        if self.controller_id == node_id:
            self.controller_id = None

    def elect(self, node_id: int) -> None:
        """Make a broker the controller, with the next controller epoch."""
        self._write()
        self.controller_id = node_id
        self.controller_epoch += 1

    def state(self, partition: Partition) -> PartitionState:
        """Return the state of a partition; one that is new is written first."""
        found = self._partitions.get(partition.key)
        if found is None:
            self._write()
            found = self._partitions[partition.key] = PartitionState(self.controller_epoch)
        return found

    def write(self, partition: Partition, controller_epoch: int | None = None) -> None:
        """Write the state of a partition. controller_epoch: None if its leader writes the ISR."""
        state = self.state(partition)
        self._write()
        state.zk_version += 1
        if controller_epoch is not None:
            state.controller_epoch = controller_epoch

    def remove(self, partition: Partition) -> None:
        """Remove the state of a partition whose topic is deleted."""
        self._partitions.pop(partition.key, None)
