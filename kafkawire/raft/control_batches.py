"""Writes and reads the batches of a KRaft log: data, control records, snapshots.

A snapshot is a file of batches: header records first, the state, a footer last; its offsets
count from 0 and its batches have the epoch of its id.

    first batch of an epoch   LeaderChange [KRaftVersion, Voters]
    snapshot                  SnapshotHeader [KRaftVersion, Voters] | data ... | SnapshotFooter
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..errors import WireError
from ..messages.k_raft_version_record import KRaftVersionRecord
from ..messages.leader_change_message import LeaderChangeMessage
from ..messages.leader_change_message import Voter as LeaderChangeVoter
from ..messages.snapshot_footer_record import SnapshotFooterRecord
from ..messages.snapshot_header_record import SnapshotHeaderRecord
from ..messages.voters_record import VotersRecord
from ..primitives import Message
from ..records import BatchBuilder, ControlType, RecordBatches, control_key, control_record
from .log import OffsetAndEpoch
from .voters import ReplicaKey, VoterSet, voter_set_of

BOOTSTRAP_SNAPSHOT: Final = OffsetAndEpoch(0, 0)
"""The id of the snapshot that `kafka-storage format` writes: the first voters, no data."""
TYPES: Final[dict[type[Message], ControlType]] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}
"""The type of each control record. Its field `version` is the version that it is written in."""


class ControlValues(NamedTuple):
    """What the control records of some batches say: by offset."""

    kraft_versions: list[tuple[int, int]]
    voters: list[tuple[int, VoterSet]]


def control_batch(
    messages: Sequence[Message], base_offset: int, epoch: int, timestamp: int
) -> bytes:
    """Write a control batch."""
    builder = BatchBuilder(base_offset=base_offset, partition_leader_epoch=epoch, control=True)
    for message in messages:
        version: int = getattr(message, "version")  # noqa: B009 - a field of all of them
        key = control_key(TYPES[message.__class__])
        builder.append(key, message.encode(version), timestamp)
    return builder.build()


def data_batch(values: Sequence[bytes], base_offset: int, epoch: int, timestamp: int) -> bytes:
    """Write a batch of records without keys, as the metadata log has them."""
    builder = BatchBuilder(base_offset=base_offset, partition_leader_epoch=epoch)
    for value in values:
        builder.append(None, value, timestamp)
    return builder.build()


def leader_change(
    leader_id: int, voters: Sequence[ReplicaKey], granting: Sequence[ReplicaKey]
) -> LeaderChangeMessage:
    """Make the record that begins an epoch.

    Its version is 0 under any kraft.version: Kafka 4.3 reads no other, and does not start on a log
    with version 1.
    """
    return LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderChangeVoter(voter_id=key.id) for key in voters],
        granting_voters=[LeaderChangeVoter(voter_id=key.id) for key in granting],
    )


def voter_records(kraft_version: int, voters: VoterSet) -> list[Message]:
    """Make the control records that say who votes: none before kraft.version 1."""
    if kraft_version < 1:
        return []
    return [KRaftVersionRecord(k_raft_version=kraft_version), voters.to_record()]


def snapshot_bytes(
    id: OffsetAndEpoch,
    batches: Sequence[Sequence[bytes]],
    *,
    kraft_version: int,
    voters: VoterSet,
    timestamp: int,
) -> bytes:
    """Write a snapshot. batches: the state, as values of records."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp)
    control: list[Message] = [header, *voter_records(kraft_version, voters)]
    parts = [control_batch(control, 0, id.epoch, timestamp)]
    offset = len(control)
    for values in batches:
        parts.append(data_batch(values, offset, id.epoch, timestamp))
        offset += len(values)
    parts.append(control_batch([SnapshotFooterRecord()], offset, id.epoch, timestamp))
    return b"".join(parts)


def bootstrap_snapshot(voters: VoterSet, timestamp: int = 0) -> bytes:
    """Write the snapshot with which a quorum of dynamic voters begins (id 0-0)."""
    return snapshot_bytes(
        BOOTSTRAP_SNAPSHOT, (), kraft_version=1, voters=voters, timestamp=timestamp
    )


def control_values(batches: bytes) -> ControlValues:
    """Read versions and voters from batches; raises WireError for invalid ones."""
    values = ControlValues([], [])
    for batch in RecordBatches(batches):
        if not batch.control:
            continue
        for record in batch:
            control = control_record(record)
            value = control.value or b""
            if control.type == ControlType.KRAFT_VERSION:
                version = KRaftVersionRecord.decode(value, 0).k_raft_version
                values.kraft_versions.append((record.offset, version))
            elif control.type == ControlType.KRAFT_VOTERS:
                values.voters.append((record.offset, voter_set_of(VotersRecord.decode(value, 0))))
    return values


def fetched_batches(data: bytes, end: OffsetAndEpoch, leader_epoch: int) -> tuple[bytes, str]:
    """Return the valid batches that continue a log, and why the next is not appended ("": all are).

    A batch is valid if its checksum is, it begins where the log ends, and its epoch is neither
    older than the log's nor newer than the leader's. A truncated batch at the end is left out.
    """
    offset, epoch = end
    valid_to = 0
    try:
        for batch in RecordBatches(data):
            batch.verify()
            if batch.magic != 2 or batch.base_offset != offset:
                return data[:valid_to], f"batch at offset {batch.base_offset}, expected {offset}"
            if not epoch <= batch.partition_leader_epoch <= leader_epoch:
                return data[:valid_to], f"batch of epoch {batch.partition_leader_epoch}"
            if batch.control:
                control_values(data[batch.start : batch.end])
            offset, epoch = batch.last_offset + 1, batch.partition_leader_epoch
            valid_to = batch.end
    except WireError as error:
        return data[:valid_to], str(error)
    return data[:valid_to], ""


def snapshot_values(data: bytes) -> ControlValues:
    """Read versions and voters from a snapshot; WireError unless it has a header and a footer."""
    types = list(_control_types(data))
    if types[:1] != [ControlType.SNAPSHOT_HEADER] or types[-1:] != [ControlType.SNAPSHOT_FOOTER]:
        raise WireError("a snapshot without its header or footer")
    return control_values(data)


def _control_types(data: bytes) -> Iterator[ControlType | int]:
    for batch in RecordBatches(data):
        batch.verify()
        if batch.control:
            for record in batch:
                yield control_record(record).type
