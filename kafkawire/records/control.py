"""Reads and writes control records: the records of brokers and controllers in a log.

The key has the type, and newer versions may append to it. Values of transaction markers are
read here; those of KRaft's types are a message of that name, version 0.

    key                version: int16 │ type: int16
    ABORT, COMMIT      value: version: int16 │ coordinator epoch: int32
    LEADER_CHANGE …    value: the body of LeaderChangeMessage, SnapshotHeaderRecord,
    SnapshotFooterRecord,
                       KRaftVersionRecord, VotersRecord
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ..errors import CorruptBatch, InvalidValue
from .record import Record

KEY: Final = Struct(">hh")
END_TXN_VALUE: Final = Struct(">hi")


class ControlType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


MESSAGES: Final = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}
"""The message in the value of each KRaft control record."""


class ControlRecord(NamedTuple):
    """A control record.

    type: a `ControlType`, or the number of an unknown one.
    version: the version in the key.
    value: raw; `MESSAGES` names its message, `end_txn_marker` reads transaction markers.
    """

    type: ControlType | int
    version: int
    value: bytes | None


class EndTxnMarker(NamedTuple):
    """The end of one producer's transaction in one partition."""

    committed: bool
    version: int
    coordinator_epoch: int


def control_record(record: Record) -> ControlRecord:
    """Read the key of a record from a control batch; CorruptBatch if it is too short."""
    key = record.key
    if key is None or len(key) < KEY.size:
        raise CorruptBatch("a control record without version and type in its key")
    version, number = KEY.unpack_from(key)
    is_defined = number in ControlType.__members__.values()
    return ControlRecord(ControlType(number) if is_defined else number, version, record.value)


def end_txn_marker(control: ControlRecord) -> EndTxnMarker:
    """Read the value of a commit or abort; CorruptBatch for another type or a short value."""
    if control.type not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptBatch(f"control type {control.type} is not a transaction marker")
    if control.value is None or len(control.value) < END_TXN_VALUE.size:
        raise CorruptBatch("a transaction marker without version and coordinator epoch")
    version, coordinator_epoch = END_TXN_VALUE.unpack_from(control.value)
    return EndTxnMarker(control.type == ControlType.COMMIT, version, coordinator_epoch)


def control_key(type: ControlType | int, version: int = 0) -> bytes:
    """Write the key of a control record."""
    if not (0 <= type <= 0x7FFF and 0 <= version <= 0x7FFF):
        raise InvalidValue(f"control type {type} version {version}: an int16 each, not negative")
    return KEY.pack(version, type)


def end_txn_value(coordinator_epoch: int, version: int = 0) -> bytes:
    """Write the value of a commit or abort."""
    if not (0 <= version <= 0x7FFF and -0x8000_0000 <= coordinator_epoch <= 0x7FFF_FFFF):
        raise InvalidValue(f"coordinator epoch {coordinator_epoch}: an int32")
    return END_TXN_VALUE.pack(version, coordinator_epoch)
