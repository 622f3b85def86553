"""The log of a quorum's replica in a log directory, as Kafka's KafkaMetadataLog.

A snapshot is durable before the log that it replaces is cut; what is on disk after a crash is
brought to the same state by the next start.

    __cluster_metadata-0/  *.log  leader-epoch-checkpoint  OFFSET-EPOCH.checkpoint  quorum-state
                           recovery-point-offset-checkpoint (not Kafka's)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from ...raft import OffsetAndEpoch, SnapshotId
from ...records import RecordBatches
from ...storage import (
    AppendOrigin,
    CorruptFile,
    Disk,
    LogCheckpoint,
    LogConfig,
    TopicPartition,
    UnifiedLog,
    delete_old_segments,
)
from ...storage.disks.disk import join, read_whole, replace
from ...storage.formats import read_offset_checkpoint, write_offset_checkpoint
from ...storage.names import RECOVERY_POINTS

PARTITION: Final = TopicPartition("__cluster_metadata", 0)
FOLDER: Final = str(PARTITION)
QUORUM_STATE: Final = f"{FOLDER}/quorum-state"
RECOVERY_POINT: Final = f"{FOLDER}/{RECOVERY_POINTS}"
CHECKPOINT_RECORDS: Final = 500
"""Records that are flushed before the recovery point is written again."""
ADVICE: Final = (
    "restore it from a backup; only while a majority of the other controllers runs may all "
    f"files of {FOLDER} but quorum-state be moved away, to be copied from them"
)
CONFIG: Final = LogConfig(cleanup_policy=frozenset({"delete"}), retention_ms=-1)
_CHECKPOINT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def snapshot_path(id: SnapshotId) -> str:
    """Return the path of a snapshot."""
    return join(FOLDER, f"{id.offset:020}-{id.epoch:010}.checkpoint")


def read_text(disk: Disk, path: str) -> str | None:
    """Read a file; None if there is none."""
    return read_whole(disk, path).decode("utf-8") if disk.exists(path) else None


class KafkaMetadataLog:
    """The log of a replica: `kafkawire.raft.ReplicatedLog` on a disk.

    now_ms: returns the wall-clock time. directory: the name of the log directory, for errors.
    Raises CorruptFile if a part of the log is damaged or missing that was durable: the records
    there may have been committed.
    """

    def __init__(
        self,
        disk: Disk,
        now_ms: Callable[[], int],
        config: LogConfig = CONFIG,
        directory: str = "",
    ) -> None:
        self.disk = disk
        self._now_ms = now_ms
        self._directory = directory
        disk.make_directory(FOLDER)
        disk.fsync_directory("")
        self._durable = read_offset_checkpoint(disk, RECOVERY_POINT).get(PARTITION, 0)
        checkpoint = LogCheckpoint(self._durable, verify=True)
        try:
            self._log = UnifiedLog(disk, PARTITION, config, now_ms=now_ms(), checkpoint=checkpoint)
        except CorruptFile as error:
            raise CorruptFile(self._path(error.path), f"{error.reason}; {ADVICE}") from None
        matches = map(_CHECKPOINT.fullmatch, disk.list(FOLDER))
        self._snapshots = sorted(
            SnapshotId(int(match[1]), int(match[2])) for match in matches if match is not None
        )
        self._drop_before_snapshot()

    def _path(self, path: str) -> str:
        return f"{self._directory}/{path}" if self._directory else path

    # -- what it has

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return self._log.log_start_offset

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends; at least where its newest snapshot does."""
        snapshot = self.latest_snapshot or OffsetAndEpoch(0, 0)
        end = self._log.log_end_offset
        if end == snapshot.offset:
            return snapshot
        return OffsetAndEpoch(end, self._log.epochs.latest)

    @property
    def size(self) -> int:
        """The bytes of the log."""
        return self._log.size

    @property
    def truncated_bytes(self) -> int:
        """The bytes that recovery cut off after a crash."""
        return self._log.truncated_bytes

    def epoch_of(self, offset: int) -> int:
        """Return the epoch of a record."""
        return self._log.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch up to `epoch` that the log knows, and where it ends."""
        entries = self._log.epochs.entries
        after = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if after == len(entries) and after:
            return OffsetAndEpoch(self._log.log_end_offset, entries[-1].epoch)
        if after:
            return OffsetAndEpoch(entries[after].start_offset, entries[after - 1].epoch)
        snapshot = self.latest_snapshot
        if snapshot is not None and snapshot.epoch <= epoch:
            return snapshot
        empty = not entries and snapshot is None
        return OffsetAndEpoch(self.start_offset, 0 if empty else -1)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one with `offset` on; at least one, if there is one."""
        if offset >= self._log.log_end_offset:
            return b""
        first = max(offset, self.start_offset)
        return b"".join(self._log.read(first, max_bytes, at_least_one=True))

    # -- changes

    def append(self, batches: bytes) -> None:
        """Append batches that continue the log."""
        offset, epoch = self.end
        for batch in RecordBatches(batches):
            end = OffsetAndEpoch(batch.base_offset, batch.partition_leader_epoch)
            if end.offset != offset or end.epoch < epoch:
                raise ValueError(f"batch {end} does not continue a log that ends at {self.end}")
            offset, epoch = batch.last_offset + 1, end.epoch
        self._log.append(batches, self._now_ms(), AppendOrigin.COORDINATOR)
        self._log.update_high_watermark(offset)

    def truncate(self, end_offset: int) -> None:
        """Remove the batches from `end_offset` on."""
        end = max(end_offset, self.start_offset)
        self._write_durable(min(self._durable, self._log.start_of_batch(end)))
        self._log.truncate(end, self._now_ms())

    def flush(self) -> None:
        """Make all of the log durable."""
        self._log.flush(self._now_ms())
        if self._log.log_end_offset - self._durable >= CHECKPOINT_RECORDS:
            self._write_durable(self._log.log_end_offset)

    def close(self) -> None:
        """Make all of the log durable, and write up to where that is."""
        self._log.flush(self._now_ms())
        self._write_durable(self._log.log_end_offset)

    def _write_durable(self, offset: int) -> None:
        """Write up to where the log is durable: the next start looks for damage before that."""
        if offset != self._durable:
            write_offset_checkpoint(self.disk, RECOVERY_POINT, {PARTITION: offset})
            self._durable = offset

    # -- snapshots

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The id of the newest snapshot."""
        return self._snapshots[-1] if self._snapshots else None

    def snapshot(self, id: SnapshotId) -> bytes | None:
        """Return the bytes of a snapshot; None if there is none of that id."""
        return read_whole(self.disk, snapshot_path(id)) if id in self._snapshots else None

    def store_snapshot(self, id: SnapshotId, data: bytes) -> None:
        """Store a snapshot durably, and drop the log before it, or all of it if it ends before."""
        latest = self.latest_snapshot
        if latest is not None and id.offset < latest.offset:
            return
        replace(self.disk, snapshot_path(id), data)
        if id not in self._snapshots:
            self._snapshots.append(id)
        self._drop_before_snapshot()

    def _drop_before_snapshot(self) -> None:
        """Let the log begin where the newest snapshot ends; the one before is kept for readers."""
        latest = self.latest_snapshot
        if latest is None:
            return
        for older in self._snapshots[:-2]:
            self.disk.delete(snapshot_path(older))
        del self._snapshots[:-2]
        log, now_ms = self._log, self._now_ms()
        if not self._contains(latest):
            self._write_durable(min(self._durable, latest.offset))
            log.truncate_fully(latest.offset, now_ms)
            return
        log.update_high_watermark(log.log_end_offset)
        log.delete_before(latest.offset)
        delete_old_segments(log, now_ms)

    def _contains(self, id: SnapshotId) -> bool:
        """Return whether the log goes on from a snapshot, or has the records that it replaces."""
        log, entries = self._log, self._log.epochs.entries
        if id.offset == log.log_start_offset or (entries and entries[0].start_offset == id.offset):
            return True
        after = bisect_right(entries, id.epoch, key=lambda entry: entry.epoch)
        if not after or entries[after - 1].epoch != id.epoch:
            return False
        end = log.log_end_offset if after == len(entries) else entries[after].start_offset
        return id.offset <= end

    # -- quorum-state

    def read_quorum_state(self) -> str | None:
        """Read the file `quorum-state`; None if there is none. Raises CorruptFile."""
        try:
            return read_text(self.disk, QUORUM_STATE)
        except UnicodeDecodeError as error:
            raise self.invalid_quorum_state(str(error)) from None

    def invalid_quorum_state(self, reason: str) -> CorruptFile:
        """Return the error of a `quorum-state` that cannot be used."""
        return CorruptFile(self._path(QUORUM_STATE), f"{reason}; {ADVICE}")

    def write_quorum_state(self, text: str) -> None:
        """Write the file `quorum-state`, durably."""
        replace(self.disk, QUORUM_STATE, text.encode("utf-8"))
