"""Logs of a node on a disk in memory that crashes, for the simulations of the packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkawire.node.broker.replica_log import StoredReplicaLog
from kafkawire.node.quorum.metadata_log import KafkaMetadataLog
from kafkawire.raft.log import StoredBatch
from kafkawire.records import RecordBatches
from kafkawire.storage import (
    LogConfig,
    LogManager,
    LogManagerConfig,
    MemoryDisk,
    TopicPartition,
)

SMALL = LogConfig(segment_bytes=1200, index_interval_bytes=100, retention_ms=-1)
"""Segments of few batches, so that files roll, are cut and are deleted."""


def losses(kept: int) -> Callable[[int], int]:
    """Return what a crash chooses: nothing that is not durable, or something of it."""
    count = kept

    def choose(below: int) -> int:
        nonlocal count
        count += kept
        return count % below

    return choose


class CrashingMetadataLog(KafkaMetadataLog):
    """A metadata log that crashes, and is opened again."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.memory = MemoryDisk() if disk is None else disk
        super().__init__(self.memory, lambda: 0, SMALL)

    @property
    def batches(self) -> Sequence[StoredBatch]:
        """All batches, for checks."""
        found, offset = [], self.start_offset
        while data := self.read(offset, 1 << 20):
            for batch in RecordBatches(data):
                stored = data[batch.start : batch.end]
                epoch = batch.partition_leader_epoch
                found.append(StoredBatch(batch.base_offset, batch.last_offset, epoch, stored))
                offset = batch.last_offset + 1
        return found

    def crash(self, kept: int = 0) -> int:
        """Lose what is not durable: all of it, or some; return how many records were lost."""
        before = self.end.offset
        self.memory.crash(losses(kept))
        self.__init__(self.memory)  # type: ignore[misc]
        return before - self.end.offset


PARTITION = TopicPartition("t", 0)


class CrashingReplicaLog(StoredReplicaLog):
    """The log of a replica that crashes, and is opened again."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.memory = MemoryDisk() if disk is None else disk
        logs = LogManager({"data": self.memory}, LogManagerConfig("c", 1, SMALL), lambda: bytes(16))
        logs.start(0)
        logs.get_or_create(PARTITION, 0)
        super().__init__(logs, PARTITION, lambda: 0)

    @property
    def flushed_offset(self) -> int:
        """Up to where the log is durable."""
        return self.log.recovery_point

    def flush(self) -> None:
        """Make all of the log durable, and say so in the checkpoint."""
        self.log.flush(0)
        self._logs.advance(1 << 40)

    def crash(self, end_offset: int, high_watermark: int) -> None:
        """Lose what is not durable, or some of it; nothing where the log is kept to its end."""
        if end_offset < self.log_end_offset:
            self.memory.crash(losses(end_offset))
        self.__init__(self.memory)  # type: ignore[misc]
        self.update_high_watermark(high_watermark)
