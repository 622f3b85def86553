"""Builds batches, and opens logs for tests."""

from __future__ import annotations

from typing import Final

from kafkawire.records import BatchBuilder, Compression, RecordBatches, end_txn_batch
from kafkawire.storage.config import LogConfig
from kafkawire.storage.disks.disk import Disk
from kafkawire.storage.disks.memory import MemoryDisk
from kafkawire.storage.loader import LogCheckpoint
from kafkawire.storage.names import TopicPartition
from kafkawire.storage.unified_log import UnifiedLog

TIME: Final = 1_700_000_000_000
ORDERS: Final = TopicPartition("orders", 0)
SMALL: Final = LogConfig(segment_bytes=700, index_interval_bytes=100)


def batch(
    offset: int,
    *records: tuple[bytes | None, bytes | None],
    epoch: int = 0,
    timestamp: int = TIME,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    compression: Compression = Compression.NONE,
) -> bytes:
    """Build a batch; record number i has the timestamp plus i."""
    builder = BatchBuilder(
        base_offset=offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        compression=compression,
    )
    for i, (key, value) in enumerate(records or ((b"key", b"value"),)):
        builder.append(key, value, timestamp + i)
    return builder.build()


def marker(offset: int, committed: bool, producer_id: int, epoch: int = 0) -> bytes:
    """Build the marker of a transaction."""
    return end_txn_batch(
        committed,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=TIME,
        offset=offset,
        partition_leader_epoch=epoch,
    )


def open_log(
    disk: Disk | None = None,
    config: LogConfig = SMALL,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean_shutdown: bool = False,
    now_ms: int = TIME,
) -> UnifiedLog:
    """Open a log, in a directory whose name is durable."""
    disk = MemoryDisk() if disk is None else disk
    disk.make_directory(str(ORDERS))
    disk.fsync_directory("")
    return UnifiedLog(
        disk,
        ORDERS,
        config,
        now_ms=now_ms,
        checkpoint=LogCheckpoint(recovery_point, log_start_offset, clean_shutdown),
    )


def filled(log: UnifiedLog, count: int = 30, size: int = 3) -> UnifiedLog:
    """Append batches of `size` records."""
    for n in range(count):
        offset = log.log_end_offset
        records = [(b"key %d" % n, b"value %d" % (offset + i)) for i in range(size)]
        log.append(batch(offset, *records, epoch=n // 10, timestamp=TIME + offset), TIME)
    return log


def content(log: UnifiedLog) -> bytes:
    """Return all batches of a log from its start."""
    return b"".join(log.read(log.log_start_offset, 1 << 30, at_least_one=True))


def records(log: UnifiedLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return offset, key and value of all records, without control records."""
    return [
        (record.offset, record.key, record.value)
        for each in RecordBatches(content(log))
        if not each.control
        for record in each.records()
    ]
