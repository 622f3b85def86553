"""Which versions of records a metadata.version writes.

A record of a cluster is written in the newest version that all its nodes read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..configs.features import NEWEST_METADATA, OLDEST_METADATA
from ..messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from ..messages.partition_change_record import PartitionChangeRecord
from ..messages.partition_record import PartitionRecord
from ..messages.register_broker_record import RegisterBrokerRecord
from ..primitives import Message

OLDEST: Final = OLDEST_METADATA
NEWEST: Final = NEWEST_METADATA
EPOCH_BUMP_UNTIL: Final = 11
"""A smaller ISR bumps the leader epoch up to this metadata.version (KIP-966 made it needless)."""
SCRAM: Final = 11
TRANSACTIONS: Final = 13
"""From there on, controllers may write records in transactions (KIP-868)."""
DELEGATION_TOKENS: Final = 14
REGISTERED_CONTROLLERS: Final = 15
DIRECTORIES: Final = 17
ELR: Final = 23
CORDONED: Final = 30

VERSIONS: Final[Mapping[type[Message], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((CORDONED, 4), (DIRECTORIES, 3), (8, 2), (0, 1)),
    PartitionRecord: ((ELR, 2), (DIRECTORIES, 1), (0, 0)),
    PartitionChangeRecord: ((ELR, 2), (DIRECTORIES, 1), (0, 0)),
}
"""Record -> (metadata.version, version of the record from there on); others have version 0."""


class VersionedRecord(NamedTuple):
    """A record and the version in which it is written."""

    message: Message
    version: int = 0


def versioned(message: Message, metadata_version: int) -> VersionedRecord:
    """Choose the version of a record."""
    if isinstance(message, BrokerRegistrationChangeRecord):
        return VersionedRecord(message, _change_version(message))
    for level, version in VERSIONS.get(type(message), ()):
        if metadata_version >= level:
            return VersionedRecord(message, version)
    return VersionedRecord(message)


def _change_version(record: BrokerRegistrationChangeRecord) -> int:
    """Return the first version that has what is set, as Kafka writes it."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
