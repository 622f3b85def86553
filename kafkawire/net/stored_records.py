"""Reads the records of a partition out of its log, for tests: without a client or a request.

What is returned is what a consumer with `isolation.level=read_committed` gets, except that an
open transaction holds nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..client.consumer import ConsumerRecord, TopicPartition
from ..errors import WireError
from ..messages.offset_commit_key import OffsetCommitKey
from ..messages.offset_commit_value import OffsetCommitValue
from ..protocol.log_records import decode_log_record
from ..protocol.log_types import InternalLog
from ..records import Batch, ControlType, RecordBatches, control_record


def consumer_records(partition: TopicPartition, start: int, data: bytes) -> list[ConsumerRecord]:
    """Return the records that a consumer gets, from offset `start` on, of the batches of a log.

    Raises WireError for corrupt batches.
    """
    batches = list(RecordBatches(data))
    committed = _committed(batches)
    records: list[ConsumerRecord] = []
    faults: list[WireError] = []
    for batch in batches:
        if not batch.control and (not batch.transactional or batch.base_offset in committed):
            rows = batch.rows(*partition, start, faults)
            records += [ConsumerRecord(*row) for row in rows]
    if faults:
        raise faults[0]
    return records


def _committed(batches: Iterable[Batch]) -> set[int]:
    """Return the base offsets of the batches whose transactions were committed."""
    committed: set[int] = set()
    pending: dict[int, list[int]] = {}
    for batch in batches:
        if batch.control:
            offsets = pending.pop(batch.producer_id, [])
            if any(control_record(each).type is ControlType.COMMIT for each in batch.records()):
                committed.update(offsets)
        elif batch.transactional:
            pending.setdefault(batch.producer_id, []).append(batch.base_offset)
    return committed


def committed_offsets(
    group_id: str, records: Iterable[ConsumerRecord]
) -> dict[TopicPartition, int]:
    """Return the offsets that a group has committed; `records` are of `__consumer_offsets`."""
    offsets: dict[TopicPartition, int] = {}
    for record in records:
        key, value = decode_log_record(InternalLog.OFFSETS, record.key, record.value)
        if key is None or not isinstance(key.message, OffsetCommitKey):
            continue
        if key.message.group != group_id:
            continue
        partition = TopicPartition(key.message.topic, key.message.partition)
        if value is not None and isinstance(value.message, OffsetCommitValue):
            offsets[partition] = value.message.offset
        else:
            offsets.pop(partition, None)
    return offsets
