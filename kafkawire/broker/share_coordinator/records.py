"""Encodes and decodes the state of share partitions as records of `__share_group_state`.

ShareSnapshot   ShareState     replaces what was before; null deletes it
ShareUpdate     StateUpdate    changes the snapshot before it
"""

from __future__ import annotations

from typing import Final

from ...messages.share_snapshot_key import ShareSnapshotKey
from ...messages.share_snapshot_value import ShareSnapshotValue
from ...messages.share_snapshot_value import StateBatch as SnapshotBatch
from ...messages.share_update_key import ShareUpdateKey
from ...messages.share_update_value import ShareUpdateValue
from ...messages.share_update_value import StateBatch as UpdateBatch
from ...primitives import Structure
from ...protocol.log_records import encode_log_message
from ..groups.offsets import LogRecord
from .state import ShareKey, ShareState, StateUpdate, state_batches

VERSION: Final = 0
"""The only version of each key and value."""


def encode_snapshot(key: ShareKey, state: ShareState | None) -> LogRecord:
    """Encode all of the state of a share partition; None if it is deleted."""
    of = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    if state is None:
        return encode_log_message(of, VERSION), None
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created,
        write_timestamp=state.written,
        state_batches=[SnapshotBatch(**each._asdict()) for each in state.batches],
    )
    return encode_log_message(of, VERSION), encode_log_message(value, VERSION)


def encode_update(key: ShareKey, snapshot_epoch: int, update: StateUpdate) -> LogRecord:
    """Encode a change of the state of a share partition since its snapshot."""
    of = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=[UpdateBatch(**each._asdict()) for each in update.batches],
    )
    return encode_log_message(of, VERSION), encode_log_message(value, VERSION)


def decode(
    key: Structure | None, value: Structure | None
) -> tuple[ShareKey, ShareState | StateUpdate | None] | None:
    """Decode a record: the share partition, its state or what changed; None for another kind."""
    if isinstance(key, ShareSnapshotKey):
        of = ShareKey(key.group_id, key.topic_id, key.partition)
        return of, _state(value) if isinstance(value, ShareSnapshotValue) else None
    if isinstance(key, ShareUpdateKey) and isinstance(value, ShareUpdateValue):
        update = StateUpdate(
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            state_batches(value.state_batches),
        )
        return ShareKey(key.group_id, key.topic_id, key.partition), update
    return None


def _state(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        state_batches(value.state_batches),
    )
