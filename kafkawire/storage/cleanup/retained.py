"""Decides what compaction retains of a batch, and writes it again.

Offsets, timestamps and the state of producers stay: a batch keeps its base and last offset,
its sequence and its epoch, and the last batch of a producer stays even without records. Tombstones
and markers stay until the delete horizon, which the first compaction that sees them sets (KIP-534).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...records import Batch, BatchBuilder, Record
from ..producer_entry import NONE, LastRecord
from .offset_map import OffsetMap
from .transactions import CleanedTransactions

MAGIC_2 = 2


class Retention(NamedTuple):
    """What decides about the batches of one round of compaction.

    upper_bound: where the round ends; the batch before it stays, at least empty.
    """

    offsets: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[int, LastRecord]
    upper_bound: int
    now_ms: int
    delete_retention_ms: int

    def retain(self, batch: Batch) -> bytes:
        """Return the batch as it is written again; empty if it goes."""
        if batch.magic < MAGIC_2:
            return batch.data[batch.start : batch.end]
        can_discard = self.transactions.can_discard(batch)
        horizon = batch.delete_horizon_ms
        expired = horizon is not None and horizon <= self.now_ms
        discard = can_discard and (expired or not batch.control)
        keeps_header = self._is_last_of_producer(batch) or batch.last_offset + 1 == self.upper_bound
        if discard and not keeps_header:
            return b""
        every = batch.records()
        kept = [] if discard else [each for each in every if self._keeps(batch, each, horizon)]
        if not kept:
            return empty_batch(batch) if keeps_header else b""
        marks = (can_discard and batch.control) or any(each.value is None for each in kept)
        if marks and horizon is None:
            return rebuilt(batch, kept, self.now_ms + self.delete_retention_ms)
        if len(kept) == len(every):
            return batch.data[batch.start : batch.end]
        return rebuilt(batch, kept, horizon)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self.last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset != NONE:
            return batch.last_offset == last.last_data_offset
        return batch.control and batch.producer_epoch == last.producer_epoch

    def _keeps(self, batch: Batch, record: Record, horizon: int | None) -> bool:
        if batch.control or record.offset > self.offsets.latest_offset:
            return True
        if record.key is None or record.offset < self.offsets.get(record.key):
            return False
        return record.value is not None or horizon is None or self.now_ms < horizon


def rebuilt(batch: Batch, records: list[Record], delete_horizon_ms: int | None) -> bytes:
    """Write a batch with some of its records."""
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        compression=batch.compression,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.transactional,
        control=batch.control,
        log_append_time=batch.max_timestamp if batch.log_append else None,
        delete_horizon_ms=delete_horizon_ms,
    )
    builder.extend(records)
    return builder.build(last_offset=batch.last_offset)


def empty_batch(batch: Batch) -> bytes:
    """Write a batch without its records."""
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.transactional,
        control=batch.control,
        log_append_time=batch.max_timestamp if batch.log_append else None,
    )
    return builder.build(last_offset=batch.last_offset, max_timestamp=batch.max_timestamp)
