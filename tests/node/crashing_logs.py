"""The logs of a node on a disk in memory that crashes, for the simulations of the packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkawire.node.metadata_log import KafkaMetadataLog
from kafkawire.raft.log import StoredBatch
from kafkawire.records import RecordBatches
from kafkawire.storage import LogConfig, MemoryDisk

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
