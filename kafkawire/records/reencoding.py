"""Writes a batch again from its decoded form.

An uncompressed batch is written byte for byte if its varints are minimal and it sets no
undefined attributes.
"""

from __future__ import annotations

from .batch import Batch
from .builder import BatchBuilder
from .compression.codecs import Compression
from .message_set import MessageSetBuilder


def reencode(batch: Batch, compression: Compression | None = None) -> bytes:
    """Write the batch again with a codec; None keeps its own."""
    codec = batch.compression if compression is None else compression
    append_time = batch.max_timestamp if batch.log_append else None
    if batch.magic != 2:
        messages = MessageSetBuilder(
            batch.magic,
            base_offset=batch.base_offset,
            compression=codec,
            log_append_time=append_time,
        )
        for record in batch.records():
            messages.append(record.key, record.value, record.timestamp, record.offset)
        return messages.build()
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        compression=codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.transactional,
        control=batch.control,
        base_timestamp=batch.base_timestamp,
        log_append_time=append_time,
        delete_horizon_ms=batch.delete_horizon_ms,
    )
    builder.extend(batch.records(as_created=True))
    return builder.build(last_offset=batch.last_offset, max_timestamp=batch.max_timestamp)
