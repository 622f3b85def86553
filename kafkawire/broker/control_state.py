"""What a broker knows from its controllers: their epoch, and the leader epochs of its partitions.

A request of an older controller, or with an earlier epoch of the broker, changes nothing. A
broker that starts again has forgotten all but its registration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ..protocol import ErrorCode

UNKNOWN_EPOCH: Final = -1
"""The broker epoch of a controller older than KIP-380, which no broker compares."""
EPOCHS_NOT_COMPARED: Final = (-1, -2)
"""Leader epochs of StopReplica: none, and that of a topic being deleted."""
E = ErrorCode


class LedPartition(Protocol):
    """A partition in ZooKeeper."""

    @property
    def topic(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def replicas(self) -> Sequence[int]: ...


class Ensemble(Protocol):
    """What brokers read in ZooKeeper."""

    @property
    def broker_epochs(self) -> Mapping[int, int]: ...
    @property
    def controller_id(self) -> int | None: ...
    def led_by(self, node_id: int, /) -> Sequence[LedPartition]:
        """Return the partitions that a broker leads."""


class ControlState:
    """The epochs that one broker compares with those of requests.

    leader_epochs: of the partitions that it hosts, by topic and index.
    """

    def __init__(self, node_id: int, ensemble: Ensemble) -> None:
        self.node_id = node_id
        self.ensemble = ensemble
        self._controller_epoch = 0
        self.leader_epochs: dict[tuple[str, int], int] = {}

    def check(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Compare the epochs of a request, and remember the controller's."""
        own = self.ensemble.broker_epochs.get(self.node_id, UNKNOWN_EPOCH)
        if broker_epoch != UNKNOWN_EPOCH and broker_epoch < own:
            return E.STALE_BROKER_EPOCH
        if controller_epoch < self._controller_epoch:
            return E.STALE_CONTROLLER_EPOCH
        self._controller_epoch = controller_epoch
        return E.NONE

    def check_shutdown(self, broker_id: int, broker_epoch: int) -> ErrorCode:
        """Check a ControlledShutdown: it is for the controller, by a registered broker."""
        if self.node_id != self.ensemble.controller_id:
            return E.STALE_CONTROLLER_EPOCH
        epoch = self.ensemble.broker_epochs.get(broker_id)
        if epoch is None:
            return E.BROKER_NOT_AVAILABLE
        if UNKNOWN_EPOCH != broker_epoch < epoch:
            return E.STALE_BROKER_EPOCH
        return E.NONE

    def become(self, key: tuple[str, int], leader_epoch: int, hosted: bool) -> ErrorCode:
        """Lead or follow a partition from a leader epoch on. hosted: if it has a replica here."""
        if leader_epoch <= self.leader_epochs.get(key, UNKNOWN_EPOCH):
            return E.STALE_CONTROLLER_EPOCH
        if not hosted:
            return E.UNKNOWN_TOPIC_OR_PARTITION
        self.leader_epochs[key] = leader_epoch
        return E.NONE

    def stop(self, key: tuple[str, int], leader_epoch: int, delete: bool) -> ErrorCode:
        """Stop the replica of a partition; a request of its current leader epoch is late."""
        epoch = self.leader_epochs.get(key, UNKNOWN_EPOCH)
        late = epoch != UNKNOWN_EPOCH and leader_epoch <= epoch
        if late and leader_epoch not in EPOCHS_NOT_COMPARED:
            return E.FENCED_LEADER_EPOCH
        if delete:
            self.leader_epochs.pop(key, None)
        return E.NONE
