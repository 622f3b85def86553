"""What the brokers of a cluster keep in ZooKeeper: registrations, the controller, partition states.

Each write gets the next transaction id (zxid). A broker's epoch is that of its registration,
so a broker that started again has a higher one; each controller has a higher controller epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Final

from ...broker import Endpoint
from ...metadata import PartitionRegistration

FIRST_ZXID: Final = 24
"""That of the first broker of an empty ensemble, as recordings of Kafka 2.2 to 2.7 show it."""
Key = tuple[str, int]


@dataclass(slots=True)
class PartitionState:
    """A partition and its state.

    controller_epoch: of the controller that wrote it last; zk_version: how often it was written
    before.
    """

    topic: str
    index: int
    replicas: Sequence[int]
    isr: Sequence[int]
    leader_id: int
    leader_epoch: int
    controller_epoch: int
    zk_version: int = 0

    @property
    def key(self) -> Key:
        """The topic and the index."""
        return self.topic, self.index

    def set(self, registration: PartitionRegistration) -> None:
        """Take over the replicas, the leader and the ISR."""
        self.replicas, self.isr = registration.replicas, registration.isr
        self.leader_id, self.leader_epoch = registration.leader, registration.leader_epoch


class Registry:
    """The nodes in ZooKeeper: brokers by id, the controller and its epoch, partitions.

    endpoints: of all brokers, also of those that are down. deletions: broker -> the replicas that
    it may not have deleted yet, which the next controller repeats.
    """

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._endpoints = {each.node_id: each for each in endpoints}
        self.broker_epochs: dict[int, int] = {}
        self.controller_id: int | None = None
        self.controller_epoch = 0
        self.deletions: dict[int, dict[Key, PartitionState]] = {}
        self.partitions: dict[Key, PartitionState] = {}
        self._zxid = FIRST_ZXID - 1

    def _write(self) -> int:
        self._zxid += 1
        return self._zxid

    @property
    def alive(self) -> set[int]:
        """The brokers that are registered."""
        return set(self.broker_epochs)

    def alive_endpoints(self) -> list[Endpoint]:
        """Return the endpoints of the brokers that are registered."""
        return [each for node_id, each in self._endpoints.items() if node_id in self.broker_epochs]

    def register(self, node_id: int) -> None:
        """Register a broker; it gets a new epoch."""
        self.broker_epochs[node_id] = self._write()

    def unregister(self, node_id: int) -> None:
        """Remove a broker whose session has ended."""
        self.broker_epochs.pop(node_id, None)
        self.deletions.pop(node_id, None)
        if self.controller_id == node_id:
            self.controller_id = None

    def elect(self, node_id: int) -> None:
        """Make a broker the controller, with the next controller epoch."""
        self._write()
        self.controller_id = node_id
        self.controller_epoch += 1

    def of_topic(self, topic: str) -> list[PartitionState]:
        """Return the partitions of a topic, by index."""
        keys = takewhile(self.partitions.__contains__, ((topic, index) for index in count()))
        return [self.partitions[key] for key in keys]

    def led_by(self, node_id: int) -> list[PartitionState]:
        """Return the partitions that a broker leads."""
        return [each for each in self.partitions.values() if each.leader_id == node_id]

    def create(self, topic: str, index: int, registration: PartitionRegistration) -> PartitionState:
        """Write the state of a new partition."""
        self._write()
        state = PartitionState(
            topic,
            index,
            registration.replicas,
            registration.isr,
            registration.leader,
            registration.leader_epoch,
            self.controller_epoch,
        )
        self.partitions[state.key] = state
        return state

    def write(self, partition: PartitionState, controller_epoch: int | None = None) -> None:
        """Write the state of a partition. controller_epoch: None if its leader writes the ISR."""
        self._write()
        partition.zk_version += 1
        if controller_epoch is not None:
            partition.controller_epoch = controller_epoch

    def remove(self, partition: PartitionState) -> None:
        """Remove a partition whose topic is deleted."""
        self.partitions.pop(partition.key, None)
