"""The logs in one log directory, and the directory's own files.

meta.properties  *-offset-checkpoint  .kafka_cleanshutdown  .lock
topic-0/  topic-1.<id>-delete/  topic-2.<id>-future/  topic-3.<id>-stray/
"""

# over 300 lines: one class for all that a log directory holds

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from . import names
from .checkpoints import OffsetCheckpoints
from .config import LogConfig
from .disks.log_directory import LogDirectory
from .errors import CorruptFile, KafkaStorageError, StorageError
from .formats import (
    MetaProperties,
    read_clean_shutdown,
    read_closed_segments,
    read_meta_properties,
    read_move_generation,
    read_partition_metadata_file,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_closed_segments,
    write_meta_properties,
    write_move_generation,
    write_partition_metadata_file,
)
from .loader import LogCheckpoint
from .names import TopicPartition
from .segments import PendingDeletions
from .unified_log import UnifiedLog


class Recovered(NamedTuple):
    """A log that was loaded. truncated_bytes: what recovery cut from it."""

    partition: TopicPartition
    directory: str
    clean_shutdown: bool
    log_end_offset: int
    truncated_bytes: int


class Damaged(NamedTuple):
    """A log that could not be loaded: its partition is offline, and its files are as they were."""

    partition: TopicPartition
    directory: str
    error: CorruptFile


@contextmanager
def going_on(*directories: DirectoryLogs) -> Iterator[None]:
    """Carry on with the other directories when one of these goes offline."""
    try:
        yield
    except KafkaStorageError:
        if not any(each.offline for each in directories):
            raise


class DirectoryLogs:
    """The logs in a directory. futures: those that are moved here and are not yet complete.

    on_roll: called with the base offset of a new segment. A partition is not in both `logs` and
    `futures`, so that checkpoints have both.
    """

    def __init__(self, disk: LogDirectory) -> None:
        self.disk = disk
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self.futures: dict[TopicPartition, UnifiedLog] = {}
        self.topic_ids: dict[TopicPartition, bytes] = {}
        self.checkpoints = OffsetCheckpoints(disk, self.logs, self.futures)
        self.directory_id: bytes | None = None
        self.broker_epoch: int | None = None
        """That of the last clean shutdown."""
        self.deletions = PendingDeletions(disk)
        self.damaged: dict[TopicPartition, Damaged] = {}
        self._unchecked: set[TopicPartition] = set()
        """Loaded logs whose segments were not checked yet."""
        self._closing: deque[TopicPartition] | None = None
        self._closed: dict[str, int] = {}
        """Folder of a log that was closed -> where it ended then."""
        self.on_roll: Callable[[TopicPartition, int], None] | None = None

    @property
    def name(self) -> str:
        return self.disk.name

    @property
    def offline(self) -> str | None:
        return self.disk.offline

    def check(self) -> None:
        """Raise KafkaStorageError if the directory is offline."""
        if self.disk.offline is not None:
            raise KafkaStorageError(self.name, self.disk.offline)

    def identify(self, cluster_id: str, node_id: int, new_uuid: Callable[[], bytes]) -> None:
        """Lock the directory and check whose it is; write meta.properties if it is new."""
        self.disk.lock(names.LOCK)
        stored = read_meta_properties(self.disk)
        if stored is None:
            logs = [name for name in self.disk.list("") if names.partition_of(name) is not None]
            if logs:
                reason = f"the file is missing, but there are logs ({logs[0]} and others)"
                raise CorruptFile(f"{self.name}/{names.META_PROPERTIES}", reason)
            stored = MetaProperties(cluster_id, node_id, new_uuid())
            write_meta_properties(self.disk, stored)
        if stored[:2] != (cluster_id, node_id):
            raise CorruptFile(
                f"{self.name}/{names.META_PROPERTIES}",
                f"is of node {stored.node_id} in cluster {stored.cluster_id!r}, "
                f"not of node {node_id} in cluster {cluster_id!r}",
            )
        self.directory_id = stored.directory_id

    def load(self, config_of: Callable[[str], LogConfig], now_ms: int) -> list[Recovered | Damaged]:
        """Load all logs, and delete what is left of deleted ones.

        A damaged log is in `damaged`, not in `logs`. The marker of a clean shutdown stays until
        `started` is called.
        """
        self.broker_epoch = read_clean_shutdown(self.disk)
        checkpoints = self.checkpoints.load(clean=self.broker_epoch is not None)
        incomplete = self._incomplete()
        recovered: list[Recovered | Damaged] = []
        for folder in self.disk.list(""):
            if not self.disk.is_directory(folder):
                continue
            if folder.endswith(names.DELETE_DIRECTORY):
                self.deletions.add(folder, now_ms)
                continue
            future, key = names.future_of(folder), names.partition_of(folder)
            if future is not None:
                config = config_of(future.topic)
                try:
                    self.futures[future] = self._load(
                        future, folder, config, checkpoints.of(future), now_ms
                    )
                except CorruptFile as error:
                    recovered.append(Damaged(future, self.name, error))
            if key is None or key.topic == names.CLUSTER_METADATA:
                continue
            checkpoint = checkpoints.of(key)
            try:
                if key in incomplete:
                    raise incomplete[key]
                log = self._open(key, config_of(key.topic), checkpoint, now_ms)
            except CorruptFile as error:
                recovered.append(self._set_offline(key, checkpoint, error))
                continue
            self._unchecked.add(key)
            log.update_high_watermark(checkpoints.high_watermarks.get(key, log.log_start_offset))
            end, cut = log.log_end_offset, log.truncated_bytes
            recovered.append(Recovered(key, self.name, checkpoints.clean, end, cut))
        self.checkpoints.write_recovery_points()
        return recovered

    def _incomplete(self) -> dict[TopicPartition, CorruptFile]:
        """Name the segments that are missing or shorter than at a clean shutdown."""
        if self.broker_epoch is None:
            return {}
        errors: dict[TopicPartition, CorruptFile] = {}
        for path, size in read_closed_segments(self.disk, self.broker_epoch).items():
            key = names.partition_of(path.partition("/")[0])
            left = self.disk.size(path) if self.disk.exists(path) else None
            if key is None or (left is not None and left >= size):
                continue
            state = "missing" if left is None else f"has {left} bytes"
            reason = f"{state}, but had {size} bytes at the last shutdown"
            errors.setdefault(key, CorruptFile(path, reason))
        return errors

    def _set_offline(
        self, key: TopicPartition, checkpoint: LogCheckpoint, error: CorruptFile
    ) -> Damaged:
        self.logs.pop(key, None)
        self.damaged[key] = Damaged(key, self.name, error)
        self.checkpoints.unloaded[key] = checkpoint
        return self.damaged[key]

    def check_joined(self, key: TopicPartition) -> None:
        """Check a log that was loaded, once its configuration is known. Raises CorruptFile."""
        if key not in self._unchecked:
            return
        self._unchecked.discard(key)
        log = self.logs[key]
        if log.config.compact or key in self.checkpoints.cleaned:
            return
        try:
            log.check_joined()
        except CorruptFile as error:
            self._set_offline(key, LogCheckpoint(log.recovery_point, log.log_start_offset), error)
            raise

    def started(self) -> None:
        """Remove the marker of a clean shutdown: all logs are loaded, and may change now."""
        remove_clean_shutdown(self.disk)

    def _open(
        self, key: TopicPartition, config: LogConfig, checkpoint: LogCheckpoint, now_ms: int
    ) -> UnifiedLog:
        log = self._load(key, str(key), config, checkpoint, now_ms)
        self.logs[key] = log
        topic_id = read_partition_metadata_file(self.disk, str(key))
        if topic_id is not None:
            self.topic_ids[key] = topic_id
        return log

    def stored_topic_id(self, key: TopicPartition) -> bytes | None:
        """Read the topic id in the directory of a damaged log; None if it cannot be read."""
        try:
            return read_partition_metadata_file(self.disk, str(key))
        except CorruptFile:
            return None

    def _load(
        self,
        key: TopicPartition,
        folder: str,
        config: LogConfig,
        checkpoint: LogCheckpoint,
        now_ms: int,
    ) -> UnifiedLog:
        return UnifiedLog(
            self.disk,
            key,
            config,
            now_ms=now_ms,
            folder=folder,
            checkpoint=checkpoint,
            deletions=self.deletions,
            on_roll=self.on_roll,
        )

    def create(
        self,
        key: TopicPartition,
        config: LogConfig,
        now_ms: int,
        topic_id: bytes | None,
        generation: int = 0,
    ) -> UnifiedLog:
        """Create a log; its directory is durable. generation: among copies, 0 for the only."""
        if names.partition_of(str(key)) != key:
            raise ValueError(f"invalid topic name {key.topic!r}")
        self.disk.make_directory(str(key))
        self.identify_topic(key, topic_id)
        if generation:
            write_move_generation(self.disk, str(key), generation)
        self.disk.fsync_directory("")
        return self._open(key, config, LogCheckpoint(), now_ms)

    def identify_topic(self, key: TopicPartition, topic_id: bytes | None) -> None:
        """Write the id of a topic to its log, if the log has none."""
        if topic_id is not None and key not in self.topic_ids:
            write_partition_metadata_file(self.disk, str(key), topic_id)
            self.topic_ids[key] = topic_id

    def retire(self, keys: Iterable[TopicPartition]) -> None:
        """Let the checkpoints forget logs that are deleted soon."""
        self.checkpoints.retired.update(keys)
        self.checkpoints.write_all()
        self.checkpoints.forget_cleaned(*self.checkpoints.retired)

    def delete(
        self, keys: Iterable[TopicPartition], new_uuid: Callable[[], bytes], now_ms: int
    ) -> None:
        """Rename the directories of logs; their files are deleted later.

        The checkpoints forget them first: a new log of that name must not be taken for it.
        """
        logs = [(key, self.logs.pop(key)) for key in keys]
        for key, _ in logs:
            self.topic_ids.pop(key, None)
        self._forget(logs, new_uuid, now_ms)

    def set_aside(self, keys: Sequence[TopicPartition], new_uuid: Callable[[], bytes]) -> list[str]:
        """Rename the directories of logs that the metadata does not have; return the new names.

        As Kafka, nothing deletes them: the metadata may be wrong.
        """
        folders: list[str] = []
        for key in keys:
            self.logs.pop(key, None)
            self.topic_ids.pop(key, None)
            self.damaged.pop(key, None)
            self.checkpoints.unloaded.pop(key, None)
            end = f".{new_uuid().hex()}{names.STRAY_DIRECTORY}"
            folders.append(str(key)[: names.LONGEST_NAME - len(end)] + end)
            self.disk.rename(str(key), folders[-1])
        self.disk.fsync_directory("")
        self.checkpoints.write_all()
        self.checkpoints.forget_cleaned(*keys)
        return folders

    def _forget(
        self,
        logs: list[tuple[TopicPartition, UnifiedLog]],
        new_uuid: Callable[[], bytes],
        now_ms: int,
    ) -> None:
        keys = {key for key, _ in logs}
        if not keys <= self.checkpoints.retired or not keys.isdisjoint(self.checkpoints.cleaned):
            self.checkpoints.write_all()
            self.checkpoints.forget_cleaned(*keys)
        self.checkpoints.retired -= keys
        for key, log in logs:
            end = f".{new_uuid().hex()}{names.DELETE_DIRECTORY}"
            renamed = str(key)[: names.LONGEST_NAME - len(end)] + end
            self.disk.rename(log.folder, renamed)
            self.deletions.add(renamed, now_ms + log.config.file_delete_delay_ms)
        self.disk.fsync_directory("")

    def close_some(self, limit: int, now_ms: int) -> int:
        """Close up to so many logs; return how many more could have been, -1 if some are left."""
        if self._closing is None:
            self._closing = deque((*self.logs, *self.futures))
        while self._closing and limit:
            log = self._log(self._closing.popleft())
            if log is not None:
                log.close(now_ms)
                self._closed[log.folder] = log.log_end_offset
                limit -= 1
        return -1 if self._closing else limit

    def _log(self, key: TopicPartition) -> UnifiedLog | None:
        return self.logs.get(key) or self.futures.get(key)

    def close(self, now_ms: int, broker_epoch: int) -> None:
        """Close all logs, mark the shutdown as clean, and unlock the directory."""
        for log in (*self.logs.values(), *self.futures.values()):
            if self._closed.get(log.folder) != log.log_end_offset:
                log.close(now_ms)
        self.checkpoints.write_all()
        sizes = {
            segment.path: segment.size for log in self.logs.values() for segment in log.segments
        }
        write_closed_segments(self.disk, broker_epoch, sizes)
        write_clean_shutdown(self.disk, broker_epoch)
        self.disk.unlock(names.LOCK)

    # -- logs that are moved here

    def create_future(
        self,
        key: TopicPartition,
        config: LogConfig,
        unique: str,
        topic_id: bytes | None,
        now_ms: int,
    ) -> None:
        """Create the future log of a partition; its directory is durable."""
        folder = f"{key}.{unique}{names.FUTURE_DIRECTORY}"
        if len(folder) > names.LONGEST_NAME:
            raise StorageError(f"{key}: the name is too long to move it to another log directory")
        self.disk.make_directory(folder)
        if topic_id is not None:
            write_partition_metadata_file(self.disk, folder, topic_id)
        self.disk.fsync_directory("")
        self.futures[key] = self._load(key, folder, config, LogCheckpoint(), now_ms)

    def delete_future(
        self, key: TopicPartition, new_uuid: Callable[[], bytes], now_ms: int
    ) -> None:
        """Give up a future log."""
        self._forget([(key, self.futures.pop(key))], new_uuid, now_ms)

    def promote(self, key: TopicPartition, generation: int, now_ms: int) -> UnifiedLog:
        """Make the future log of a partition its log: durable first, then under its name."""
        future = self.futures[key]
        future.close(now_ms)
        self.checkpoints.write_recovery_points()
        self.checkpoints.write_start_offsets()
        write_move_generation(self.disk, future.folder, generation)
        self.disk.rename(future.folder, str(key))
        self.disk.fsync_directory("")
        del self.futures[key]
        checkpoint = LogCheckpoint(
            future.recovery_point, future.log_start_offset, clean_shutdown=True
        )
        return self._open(key, future.config, checkpoint, now_ms)

    def generation(self, key: TopicPartition) -> int:
        """Return the number of a log among the copies that moves may leave."""
        return read_move_generation(self.disk, str(key))

    def write_generation(self, key: TopicPartition, generation: int) -> None:
        """Let a log be the valid one of its copies."""
        write_move_generation(self.disk, str(key), generation)
