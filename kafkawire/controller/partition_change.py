"""Changes a partition: elects its leader, completes its reassignment, keeps its ELR (KIP-966).

A leader is in the ISR and on an active broker, or it was elected uncleanly and is the whole
ISR; a change that changes nothing makes no record. The steps are those of Kafka's
PartitionChangeBuilder, so that equal changes make equal records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from ..messages.partition_change_record import PartitionChangeRecord
from ..metadata import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionRegistration,
    TopicIdPartition,
)
from ..metadata.versions import DIRECTORIES, EPOCH_BUMP_UNTIL
from .state import ControllerState

Ids = tuple[int, ...]


class Election(Enum):
    """Which replicas may become leader.

    PREFERRED: of the ISR, the first replica before the present leader. ONLINE: of the ISR, the
    present leader before others. UNCLEAN: as ONLINE, else any active replica.
    """

    PREFERRED = auto()
    ONLINE = auto()
    UNCLEAN = auto()


@dataclass(slots=True)
class PartitionTarget:
    """What a partition should become: None leaves it as it is.

    unclean_shutdown: a replica that may have lost records. directory: the log directory of a
    broker's replica.
    """

    isr: Ids | None = None
    replicas: Ids | None = None
    removing: Ids | None = None
    adding: Ids | None = None
    recovery: int | None = None
    election: Election = Election.ONLINE
    unclean_shutdown: int = NO_LEADER
    directory: tuple[int, bytes] | None = None


class PartitionChange:
    """One change of one partition, step by step."""

    def __init__(
        self,
        state: ControllerState,
        at: TopicIdPartition,
        target: PartitionTarget,
        acceptable: Callable[[int], bool] | None = None,
    ) -> None:
        partition = state.image.partition(at)
        assert partition is not None
        self.state = state
        self.old: PartitionRegistration = partition
        self.record = PartitionChangeRecord(topic_id=at[0], partition_id=at[1])
        self.topic_id = at[0]
        self.target = target
        self.acceptable = acceptable or partial(may_lead, state, partition)
        self.isr = _or(target.isr, partition.isr)
        self.replicas = _or(target.replicas, partition.replicas)
        self.removing = _or(target.removing, partition.removing)
        self.adding = _or(target.adding, partition.adding)
        self.elr = partition.elr

    def build(self) -> PartitionChangeRecord | None:
        """Make the record; None if nothing changes."""
        self._complete_reassignment()
        self._update_elr()
        self._elect()
        self._complete_reassignment()  # again: a leader that is the whole ISR may be enough
        self._bump_for_reassignment()
        self._record_elr()
        self._record_isr()
        self._record_last_known_leader()
        self._record_assignment()
        recovery = self.target.recovery
        if recovery is not None and recovery != self.old.leader_recovery_state:
            self.record.leader_recovery_state = recovery
        empty = PartitionChangeRecord(
            topic_id=self.record.topic_id, partition_id=self.record.partition_id
        )
        return None if self.record == empty else self.record

    def _complete_reassignment(self) -> None:
        """Drop the removed replicas once all others are in sync."""
        if not (self.removing or self.adding):
            return
        isr = tuple(each for each in self.isr if each not in self.removing)
        replicas = tuple(each for each in self.replicas if each not in self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas = isr, replicas
            self.removing = self.adding = ()

    # -- election

    def is_online(self, broker_id: int) -> bool:
        """Return whether a replica is on an acceptable broker, in a readable directory."""
        if not self.acceptable(broker_id):
            return False
        broker = self.state.image.brokers.get(broker_id)
        return broker is not None and broker.has_online_directory(self.old.directory(broker_id))

    def _is_eligible(self, broker_id: int) -> bool:
        clean = broker_id in self.isr or (not self.isr and broker_id in self.elr)
        return clean and self.is_online(broker_id)

    def _candidates(self) -> Sequence[int]:
        """List the replicas, the best leader first."""
        if self.target.election is Election.PREFERRED:
            return (self.replicas[0], self.old.leader, *self.replicas[1:])
        return (self.old.leader, *self.replicas)

    def _chosen(self) -> tuple[int, bool]:
        """Choose the leader; return it, and whether the election is unclean."""
        for each in self._candidates():
            if self._is_eligible(each):
                return each, False
        last = self.old.last_known_elr
        is_last = self.state.elr_enabled and not self.isr and not self.elr and len(last) == 1
        if is_last and last[0] in self.replicas and self.is_online(last[0]):
            return last[0], True
        if self.target.election is Election.UNCLEAN:
            for each in self.replicas:
                if self.is_online(each):
                    return each, True
        return NO_LEADER, False

    def _elect(self) -> None:
        leader, unclean = self._chosen()
        if leader == self.old.leader:
            return
        if leader in self.elr:
            self.isr = (leader,)
            self.elr = tuple(each for each in self.elr if each != leader)
        self.record.leader = leader
        if unclean:
            self.isr = (leader,)
            self.record.isr = [leader]
            if self.old.leader_recovery_state != RECOVERING:
                self.record.leader_recovery_state = RECOVERING

    def _bump_for_reassignment(self) -> None:
        """Give the leader a new epoch when a replica left: it may still fetch."""
        if self.record.leader == NO_LEADER_CHANGE and not set(self.old.replicas) <= set(
            self.replicas
        ):
            self.record.leader = self.old.leader

    # -- eligible leader replicas

    def _update_elr(self) -> None:
        """Keep who left the ISR while it is below min.insync.replicas: it has all records."""
        if not self.state.elr_enabled:
            return
        if len(self.isr) >= self.state.min_isr(self.topic_id):
            self.elr = ()
            return
        candidates = {*self.old.elr, *self.old.isr} & set(self.replicas)
        self.elr = tuple(sorted(candidates - {*self.isr, self.target.unclean_shutdown}))

    def _record_elr(self) -> None:
        if self.record.isr is not None or not self.state.elr_enabled:
            self.elr = ()
        self.elr = tuple(each for each in self.elr if each in self.replicas)
        if self.elr != self.old.elr:
            self.record.eligible_leader_replicas = list(self.elr)

    def _record_isr(self) -> None:
        """Record the ISR; without ELR, its last member stays in it."""
        if self.record.isr is None and self.isr != self.old.isr and self._may_be(self.isr):
            self.record.isr = list(self.isr)
        unchanged = self.record.isr is None or self.record.leader != NO_LEADER_CHANGE
        if unchanged or self.state.metadata_version > EPOCH_BUMP_UNTIL:
            return
        if not set(self.old.isr) <= set(self.record.isr or ()):
            self.record.leader = self.old.leader

    def _may_be(self, isr: Ids) -> bool:
        return bool(isr) or self.state.elr_enabled

    def _record_last_known_leader(self) -> None:
        if not self.state.elr_enabled:
            return
        old, record = self.old, self.record
        if record.isr is not None and not record.isr:
            if old.last_known_elr != (old.leader,):
                record.last_known_elr = [old.leader]
        elif old.last_known_elr and (
            record.leader >= 0 or (old.leader != NO_LEADER and record.leader != NO_LEADER)
        ):
            record.last_known_elr = []

    # -- assignment

    def _record_assignment(self) -> None:
        if self.state.metadata_version >= DIRECTORIES:
            directories = tuple(map(self._directory, self.replicas))
            if directories != self.old.directories:
                self.record.directories = list(directories)
        if self.replicas != self.old.replicas:
            self.record.replicas = list(self.replicas)
        if self.removing != self.old.removing:
            self.record.removing_replicas = list(self.removing)
        if self.adding != self.old.adding:
            self.record.adding_replicas = list(self.adding)

    def _directory(self, broker_id: int) -> bytes:
        directory_of = self.target.directory
        if directory_of is not None and directory_of[0] == broker_id:
            return directory_of[1]
        if broker_id in self.old.replicas and self.old.directories:
            return self.old.directory(broker_id)
        return self.state.default_directory(broker_id)


def may_lead(state: ControllerState, partition: PartitionRegistration, broker_id: int) -> bool:
    """Return whether a broker is active, or goes on leading while it is shutting down.

    Only with ZooKeeper does a broker that is shutting down lead.
    """
    broker = state.image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return False
    return broker_id == partition.leader or not broker.in_controlled_shutdown


def _or(new: Ids | None, old: Ids) -> Ids:
    return old if new is None else new


def change_partition(
    state: ControllerState,
    at: TopicIdPartition,
    target: PartitionTarget,
    acceptable: Callable[[int], bool] | None = None,
) -> PartitionChangeRecord | None:
    """Change a partition, and write the record; None if nothing changed.

    acceptable: which brokers may lead; by default those of `may_lead`.
    """
    record = PartitionChange(state, at, target, acceptable).build()
    if record is not None:
        state.write(record)
    return record


def leave_isr(
    state: ControllerState, partitions: Sequence[TopicIdPartition], broker_id: int
) -> None:
    """Take a broker out of the ISRs of partitions and elect leaders where it led."""
    _regenerate(state, partitions, broker_id, PartitionTarget(unclean_shutdown=NO_LEADER))


def lose_records(
    state: ControllerState, partitions: Sequence[TopicIdPartition], broker_id: int
) -> None:
    """Take a broker, which may have lost records, out of ISR and ELR (KIP-966)."""
    _regenerate(state, partitions, broker_id, PartitionTarget(unclean_shutdown=broker_id))


def _regenerate(
    state: ControllerState,
    partitions: Sequence[TopicIdPartition],
    leaving: int,
    target: PartitionTarget,
) -> None:
    for at in partitions:
        partition = state.image.partition(at)
        assert partition is not None

        def acceptable(broker_id: int, old: PartitionRegistration = partition) -> bool:
            return broker_id != leaving and may_lead(state, old, broker_id)

        isr = tuple(each for each in partition.isr if each != leaving)
        unclean = state.unclean_enabled(at[0])
        elected = PartitionTarget(
            isr=isr,
            unclean_shutdown=target.unclean_shutdown,
            election=Election.UNCLEAN if unclean else Election.ONLINE,
        )
        change_partition(state, at, elected, acceptable)
