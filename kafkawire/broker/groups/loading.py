"""Loads the groups and offsets of a partition of `__consumer_offsets`.

Replaying the log in order gives what its last coordinator knew: records, and the markers of
the transactions that have committed offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from ...messages.group_metadata_key import GroupMetadataKey
from ...messages.group_metadata_value import GroupMetadataValue
from ...messages.offset_commit_key import OffsetCommitKey
from ...messages.offset_commit_value import OffsetCommitValue
from ...primitives import Structure
from ...protocol.log_records import decode_log_record
from ...protocol.log_types import InternalLog
from ...records import Batch, ControlType, control_record
from ..context import Context
from . import offsets
from .classic_groups.group import Group
from .consumer_groups.coordinator import ConsumerGroups
from .coordinator_log import CoordinatorLog
from .modern_groups import ModernGroups
from .offsets import Committed, TopicPartition
from .pending_offsets import PendingOffsets
from .requests import Effect
from .share_groups.coordinator import ShareGroups
from .streams_groups.coordinator import StreamsGroups
from .usage import Usage

Groups = dict[str, GroupMetadataValue | None]


class Coordinator(Protocol):
    """The coordinator that is loaded, as `groups.coordinator` has it."""

    context: Context
    log: CoordinatorLog
    index: int
    usage: Usage
    groups: dict[str, Group]
    offsets: defaultdict[str, dict[TopicPartition, Committed]]
    pending_offsets: PendingOffsets
    consumer_groups: ConsumerGroups
    share_groups: ShareGroups
    streams_groups: StreamsGroups

    @property
    def modern_groups(self) -> Iterable[ModernGroups[Any]]:
        """The groups of all types but the classic one."""

    def has(self, group_id: str) -> bool:
        """Whether a group of any type has an id."""

    def appended(self, offset: int) -> None:
        """Take note of the end of the log."""

    def group(self, group_id: str, now: float) -> Group:
        """Find a group, or create it."""

    def perform(self, group: Group, effects: Iterable[Effect], now: float) -> None:
        """Carry out the effects of a group."""

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Commit or forget the offsets of a transaction."""


def load(coordinator: Coordinator, now: float) -> None:
    """Load groups and offsets from the log."""
    loaded: Groups = {}
    for data in coordinator.log.batches(coordinator.index):
        batch = Batch(data, 0, len(data))
        coordinator.appended(batch.base_offset + batch.last_offset_delta + 1)
        if batch.control:
            _end_transaction(coordinator, batch)
        else:
            _load_batch(coordinator, batch, loaded)
    for group_id, metadata in loaded.items():
        if metadata is not None:
            group = coordinator.group(group_id, now)
            offsets.restore(group, metadata, now)
            since_ms = metadata.current_state_timestamp
            group.changed_at = (since_ms - coordinator.context.epoch_ms) / 1000
    for groups in coordinator.modern_groups:
        groups.loaded(now)
    for group_id, by_partition in coordinator.offsets.items():
        if coordinator.has(group_id):
            continue
        if by_partition or coordinator.pending_offsets.of(group_id):
            coordinator.group(group_id, now)
    for group in coordinator.groups.values():
        coordinator.perform(group, [], now)


def _end_transaction(coordinator: Coordinator, batch: Batch) -> None:
    for record in batch.records():
        kind = control_record(record).type
        if kind in (ControlType.COMMIT, ControlType.ABORT):
            coordinator.end_transaction(batch.producer_id, kind == ControlType.COMMIT)


def _load_batch(coordinator: Coordinator, batch: Batch, loaded: Groups) -> None:
    for record in batch.records():
        read = decode_log_record(InternalLog.OFFSETS, record.key, record.value)
        key = None if read.key is None else read.key.message
        value = None if read.value is None else read.value.message
        if isinstance(key, GroupMetadataKey):
            loaded[key.group] = value if isinstance(value, GroupMetadataValue) else None
        elif isinstance(key, OffsetCommitKey):
            _load_offset(coordinator, batch, key, value)
        elif key is not None and (value is not None or record.value is None):
            for groups in coordinator.modern_groups:
                groups.replay(key, value)


def _load_offset(
    coordinator: Coordinator, batch: Batch, key: OffsetCommitKey, value: Structure | None
) -> None:
    of = key.topic, key.partition
    by_partition = coordinator.offsets[key.group]
    if batch.transactional and isinstance(value, OffsetCommitValue):
        committed = {of: offsets.committed_of(value)}
        coordinator.pending_offsets.add(batch.producer_id, key.group, committed)
        return
    coordinator.usage.offsets -= len(by_partition)
    coordinator.pending_offsets.supersede(key.group, [of])
    if isinstance(value, OffsetCommitValue):
        by_partition[of] = offsets.committed_of(value)
    else:
        by_partition.pop(of, None)
    coordinator.usage.offsets += len(by_partition)
