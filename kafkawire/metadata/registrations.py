"""What an image holds of a broker and of a partition.

Values are immutable; a change makes a new one, so that images share what they have in common.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from ..messages.partition_change_record import PartitionChangeRecord
from ..messages.partition_record import PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_CHANGE: Final = -1
UNASSIGNED: Final = bytes(16)
LOST: Final = bytes(15) + b"\x01"
MIGRATING: Final = bytes(15) + b"\x02"
RESERVED_DIRECTORIES: Final = 100
"""Directory ids below this number name no directory (KIP-858)."""

Ids = tuple[int, ...]
FENCE: Final = 1
UNFENCE: Final = -1
FENCED: Final = {FENCE: True, UNFENCE: False}
"""Value of a `BrokerRegistrationChangeRecord` -> the new state; 0 leaves the old one."""


def is_reserved(directory: bytes) -> bool:
    """Return whether a directory id is one of those that name no directory."""
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES


class PartitionRegistration(NamedTuple):
    """One partition: who has it, who leads it, and its epochs.

    directories: parallel to `replicas`; () if the records have none. elr, last_known_elr: KIP-966.
    """

    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing: Ids = ()
    adding: Ids = ()
    leader_recovery_state: int = RECOVERED
    directories: tuple[bytes, ...] = ()
    elr: Ids = ()
    last_known_elr: Ids = ()

    @classmethod
    def of(cls, record: PartitionRecord) -> PartitionRegistration:
        """Read the record of a new partition."""
        return cls(
            tuple(record.replicas),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            record.leader_recovery_state,
            tuple(record.directories),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == self.replicas[0]

    def directory(self, broker_id: int) -> bytes:
        """Return the directory of a replica; that of an unknown one is UNASSIGNED."""
        if broker_id in self.replicas and self.directories:
            return self.directories[self.replicas.index(broker_id)]
        return UNASSIGNED

    def merge(self, change: PartitionChangeRecord) -> PartitionRegistration:
        """Apply a change: the partition epoch grows by 1, the leader epoch if a leader is given."""
        elected = change.leader != NO_LEADER_CHANGE
        recovery = change.leader_recovery_state
        replicas = _given(change.replicas, self.replicas)
        return PartitionRegistration(
            replicas,
            _given(change.isr, self.isr),
            change.leader if elected else self.leader,
            self.leader_epoch + elected,
            self.partition_epoch + 1,
            _given(change.removing_replicas, self.removing),
            _given(change.adding_replicas, self.adding),
            self.leader_recovery_state if recovery == NO_CHANGE else recovery,
            self._directories(replicas, change.directories),
            _given(change.eligible_leader_replicas, self.elr),
            _given(change.last_known_elr, self.last_known_elr),
        )

    def _directories(self, replicas: Ids, directories: list[bytes] | None) -> tuple[bytes, ...]:
        """Return the directories of the replicas: a record may move these and not name those."""
        if directories is not None:
            return tuple(directories)
        if replicas == self.replicas or not self.directories:
            return self.directories
        return tuple(map(self.directory, replicas))

    def record(self, topic_id: bytes, index: int) -> PartitionRecord:
        """Make the record of the partition as it is."""
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


def _given(new: list[int] | None, old: Ids) -> Ids:
    return old if new is None else tuple(new)


class Endpoint(NamedTuple):
    """One listener of a broker."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerRegistration(NamedTuple):
    """A registered broker.

    epoch: of this incarnation; it is the offset of its first record. offset: of its newest
    `RegisterBrokerRecord`, up to which the broker has to read before it is unfenced.
    features: name -> (lowest, highest level).
    """

    broker_id: int
    incarnation_id: bytes
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online_directory(self, directory: bytes) -> bool:
        """Return whether a replica there is readable; without a directory it is."""
        if directory in (UNASSIGNED, MIGRATING):
            return True
        return directory != LOST and (not self.directories or directory in self.directories)

    @property
    def default_directory(self) -> bytes:
        """Where a new replica goes: the only directory, else the broker chooses (KIP-858)."""
        if not self.directories:
            return MIGRATING
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED

    def changed(self, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
        """Apply a change."""
        cordoned = record.cordoned_log_dirs
        return self._replace(
            fenced=FENCED.get(record.fenced, self.fenced),
            in_controlled_shutdown=(
                self.in_controlled_shutdown or record.in_controlled_shutdown == 1
            ),
            directories=tuple(record.log_dirs) or self.directories,
            cordoned=self.cordoned if cordoned is None else tuple(cordoned),
        )
