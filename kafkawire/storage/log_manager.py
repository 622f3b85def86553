"""The logs of a broker in its log directories.

A new log goes to the directory with the fewest. A directory that fails takes its logs offline, not
the broker. What a checkpoint says may be too low after a crash, never too high: it is written
before a log is cut or deleted.

    start -> get_or_create, append, truncate, delete ... -> shutdown
    next_deadline / advance: flush by time, checkpoints, retention, compaction, late deletions
"""

# over 300 lines: one class for the logs of a broker

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .config import LogConfig, LogManagerConfig
from .directory_logs import Damaged, DirectoryLogs, Recovered, going_on
from .disks.disk import Disk
from .disks.log_directory import LogDirectory
from .errors import CorruptFile, KafkaStorageError, LogDamaged, LogDirNotFound
from .formats import UNKNOWN_BROKER_EPOCH
from .maintenance import Maintenance
from .moves import Moves, valid_copies
from .names import TopicPartition
from .unified_log import UnifiedLog

DELETED_AT_ONCE: Final = 16
"""Files and directories that are due which `advance` deletes: the rest is due in its next call."""


@dataclass(slots=True)
class Place:
    """A log and the directory that has it; both change when the log has moved."""

    directory: DirectoryLogs
    log: UnifiedLog


class Stray(NamedTuple):
    """A log that the metadata does not have, and the new name of its directory."""

    partition: TopicPartition
    directory: str
    folder: str


class LogManager:
    """The logs of a broker. disks: name of a log directory -> its disk."""

    def __init__(
        self, disks: Mapping[str, Disk], config: LogManagerConfig, new_uuid: Callable[[], bytes]
    ) -> None:
        self.config = config
        self._new_uuid = new_uuid
        self._directories = [
            DirectoryLogs(LogDirectory(name, disk)) for name, disk in disks.items()
        ]
        self._places: dict[TopicPartition, Place] = {}
        self._moves = Moves(
            new_uuid, config.replica_fetch_max_bytes, config.alter_log_dirs_io_max_bytes_per_second
        )
        self._topic_configs: dict[str, LogConfig] = {}
        self.on_damage: Callable[[TopicPartition, CorruptFile], None] | None = None
        self._maintenance = Maintenance(config, self._moves, self._report)

    def start(
        self, now_ms: int, topic_configs: Mapping[str, LogConfig] | None = None
    ) -> list[Recovered | Damaged]:
        """Load all logs; return what was recovered, and what could not be loaded."""
        self._topic_configs = dict(topic_configs or {})
        recovered: list[Recovered | Damaged] = []
        for directory in self._directories:
            with going_on(directory):
                directory.identify(self.config.cluster_id, self.config.node_id, self._new_uuid)
                recovered += directory.load(self._config_of, now_ms)
        valid = valid_copies(self._online, self._new_uuid, now_ms)
        self._places = {key: self._place(each, each.logs[key]) for key, each in valid.items()}
        self._moves.resume(self._online, valid, now_ms, complete=not self.offline_directories)
        for directory in self._online:
            with going_on(directory):
                directory.started()
        self._maintenance.start(now_ms)
        return recovered

    # -- logs

    @property
    def _online(self) -> list[DirectoryLogs]:
        return [each for each in self._directories if not each.offline]

    @property
    def offline_directories(self) -> dict[str, str]:
        """Name of each offline directory -> the reason."""
        return {each.name: each.offline for each in self._directories if each.offline}

    @property
    def directory_ids(self) -> list[bytes]:
        """The ids of the online directories, in order."""
        return [each.directory_id for each in self._online if each.directory_id is not None]

    @property
    def clean_shutdown_epoch(self) -> int:
        """The broker epoch of the last shutdown if all directories agree on it, else -1."""
        epoch, *others = {each.broker_epoch for each in self._directories}
        return UNKNOWN_BROKER_EPOCH if epoch is None or others else epoch

    @property
    def directories(self) -> Sequence[DirectoryLogs]:
        """All directories, in order."""
        return self._directories

    def directory_of(self, partition: TopicPartition) -> DirectoryLogs | None:
        """Return the directory that has a log, online or not; None for an unknown log."""
        place = self._places.get(partition)
        return None if place is None else place.directory

    def place(self, partition: TopicPartition) -> Place:
        """Return where a log is, online or not. Raises KeyError."""
        return self._places[partition]

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """Return the topic id of a log; None if it is not known."""
        place = self._places.get(partition)
        return None if place is None else place.directory.topic_ids.get(partition)

    def __contains__(self, partition: TopicPartition) -> bool:
        """Whether there is a log of a partition that is online."""
        place = self._places.get(partition)
        return place is not None and not place.directory.offline

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions whose logs are online."""
        return [key for key, place in self._places.items() if not place.directory.offline]

    def log(self, partition: TopicPartition) -> UnifiedLog | None:
        """Return a log; None if there is none. Raises KafkaStorageError if it is offline."""
        place = self._places.get(partition)
        if place is None:
            return None
        place.directory.check()
        return place.log

    def get_or_create(
        self,
        partition: TopicPartition,
        now_ms: int,
        topic_id: bytes | None = None,
        *,
        is_new: bool = True,
    ) -> UnifiedLog:
        """Return a log, created in the directory with the fewest.

        topic_id: given to a log that has none, too, as a crash may leave one. is_new: False if it
        may be on an offline directory; then it is not created. A new log takes the place of one on
        an offline directory, also when that is online again; if its directory fails, it is created
        in another.
        """
        place = self._places.get(partition)
        if place is not None and not (is_new and place.directory.offline):
            place.directory.check()
            self._check_joined(place.directory, partition)
            place.directory.identify_topic(partition, topic_id)
            return place.log
        self._check_damaged(partition, topic_id)
        while True:
            online = self._online
            if not online or (not is_new and len(online) < len(self._directories)):
                name, reason = next(
                    iter(self.offline_directories.items()), ("", "no log directory")
                )
                raise KafkaStorageError(name, reason)
            directory = min(online, key=lambda each: len(each.logs) + len(each.futures))
            try:
                return self._create(directory, partition, now_ms, topic_id)
            except KafkaStorageError:
                if not directory.offline:
                    raise  # else another directory may do, and there is one fewer

    def _create(
        self,
        directory: DirectoryLogs,
        partition: TopicPartition,
        now_ms: int,
        topic_id: bytes | None,
    ) -> UnifiedLog:
        if partition in directory.futures:  # its log is lost
            directory.delete_future(partition, self._new_uuid, now_ms)
        generation = 0 if len(self._online) == len(self._directories) else now_ms
        config = self._config_of(partition.topic)
        log = directory.create(partition, config, now_ms, topic_id, generation)
        self._places[partition] = self._place(directory, log)
        return log

    def _place(self, directory: DirectoryLogs, log: UnifiedLog) -> Place:
        log.producers.most = self.config.max_producers
        return Place(directory, log)

    def _check_damaged(self, partition: TopicPartition, topic_id: bytes | None) -> None:
        """Raise LogDamaged if the log could not be loaded; that of another topic is set aside."""
        for directory in self._online:
            damaged = directory.damaged.get(partition)
            if damaged is None:
                continue
            stored = directory.stored_topic_id(partition)
            if topic_id is None or stored is None or stored == topic_id:
                raise LogDamaged(directory.name, str(damaged.error))
            directory.set_aside([partition], self._new_uuid)

    def _check_joined(self, directory: DirectoryLogs, partition: TopicPartition) -> None:
        """Raise LogDamaged if segments are missing from a log that was loaded."""
        try:
            directory.check_joined(partition)
        except CorruptFile as error:
            del self._places[partition]
            self._report(partition, error)
            raise LogDamaged(directory.name, str(error)) from None

    def _report(self, partition: TopicPartition, error: CorruptFile) -> None:
        if self.on_damage is not None:
            self.on_damage(partition, error)

    def set_aside(self, partitions: Iterable[TopicPartition]) -> list[Stray]:
        """Rename the directories of logs that the metadata does not have; they are kept."""
        wanted = set(partitions)
        strays: list[Stray] = []
        for directory in self._online:
            here = [each for each in (*directory.logs, *directory.damaged) if each in wanted]
            for partition in here:
                self._places.pop(partition, None)
            if here:
                with going_on(directory):
                    folders = directory.set_aside(here, self._new_uuid)
                    strays += map(Stray, here, [directory.name] * len(here), folders)
        return strays

    @property
    def damaged(self) -> list[TopicPartition]:
        """The partitions whose logs could not be loaded."""
        return [partition for directory in self._online for partition in directory.damaged]

    def retire(self, partitions: Iterable[TopicPartition]) -> None:
        """Let the checkpoints forget logs that are deleted soon, in one or several calls."""
        retired: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            retired.setdefault(self._places[partition].directory.name, []).append(partition)
        for directory in self._online:
            if directory.name in retired:
                with going_on(directory):
                    directory.retire(retired[directory.name])

    def delete(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Take logs out of their directories at once, and delete their files later.

        Those on a directory that is offline are left.
        """
        deleted: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            self._moves.cancel(partition, now_ms)
            place = self._places.pop(partition)
            deleted.setdefault(place.directory.name, []).append(partition)
        for directory in self._online:
            if directory.name in deleted:
                with going_on(directory):
                    directory.delete(deleted[directory.name], self._new_uuid, now_ms)

    def truncate(self, partition: TopicPartition, offset: int, now_ms: int) -> bool:
        """Truncate a log, with the checkpoints that must not be above its end."""
        place = self._places[partition]
        end = place.log.start_of_batch(offset)  # where the log ends afterwards
        if end < place.log.recovery_point:
            place.log.recovery_point = end
            place.directory.checkpoints.write_recovery_points()
        start = place.log.log_start_offset
        truncated = place.log.truncate(offset, now_ms)
        self._moves.truncate(partition, now_ms)
        if place.log.log_start_offset < start:
            place.directory.checkpoints.write_start_offsets()
        return truncated

    def truncate_fully(self, partition: TopicPartition, offset: int, now_ms: int) -> None:
        """Remove all of a log, which goes on at an offset, with the checkpoints."""
        place = self._places[partition]
        directory, log = place.directory, place.log
        log.recovery_point = min(log.recovery_point, offset)
        directory.checkpoints.write_recovery_points()
        if offset < log.log_start_offset:
            directory.checkpoints.write_start_offsets({partition: offset})
        log.truncate_fully(offset, now_ms)
        self._moves.truncate(partition, now_ms)

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        """Move a log's start offset, which does not go back after a crash.

        Raises OffsetOutOfRange if the offset is beyond the log.
        """
        place = self._places[partition]
        directory, log = place.directory, place.log
        if log.log_start_offset < offset <= log.log_end_offset:
            directory.checkpoints.write_start_offsets({partition: offset})
        log.delete_before(offset)

    def update_configs(self, configs: Mapping[str, LogConfig | None]) -> None:
        """Change the configurations of topics; None is the broker's default."""
        changed: dict[str, LogConfig] = {}
        for topic, config in configs.items():
            before = self._config_of(topic)
            if config is None:
                self._topic_configs.pop(topic, None)
            else:
                self._topic_configs[topic] = config
            if self._config_of(topic) != before:
                changed[topic] = self._config_of(topic)
        for partition, place in self._places.items() if changed else ():
            if partition.topic in changed:
                place.log.config = changed[partition.topic]

    def _config_of(self, topic: str) -> LogConfig:
        return self._topic_configs.get(topic, self.config.topic)

    # -- moves

    @property
    def moves(self) -> dict[TopicPartition, str]:
        """Partitions whose logs are being moved -> the log directory that they are moved to."""
        return self._moves.targets

    @property
    def failed_moves(self) -> dict[TopicPartition, str]:
        """Partitions whose last move ended with an error -> the error."""
        return self._moves.failed

    def move(self, partition: TopicPartition, directory: str, now_ms: int) -> None:
        """Begin to move a log to another log directory; a move to its own is the end of a move.

        `advance` copies; once the copy is complete, `log` returns it. Raises LogDirNotFound, and
        KafkaStorageError if a directory is offline.
        """
        target = next((each for each in self._directories if each.name == directory), None)
        if target is None:
            raise LogDirNotFound(directory)
        place = self._places[partition]
        target.check()
        place.directory.check()
        self._moves.begin(partition, place.directory, target, now_ms)

    # -- time

    def next_deadline(self) -> int | None:
        """Return when to call `advance`, in milliseconds."""
        pending = [each.deletions.next_ms for each in self._online]
        pending += [self._moves.next_ms, self._maintenance.next_ms]
        return min((each for each in pending if each is not None), default=None)

    def advance(self, now_ms: int) -> None:
        """Do what is due. A directory that fails goes offline."""
        due = self._maintenance.take_due(now_ms)
        for partition, directory, log in self._moves.run(now_ms):
            place = self._places.setdefault(partition, self._place(directory, log))
            place.directory, place.log = directory, log
        for directory in self._online:
            with going_on(directory):
                self._maintenance.run(due, directory, now_ms)
                directory.deletions.run(now_ms, DELETED_AT_ONCE)

    def close_some(self, limit: int, now_ms: int) -> bool:
        """Close up to so many logs before a shutdown; return whether all are closed.

        A log that is appended to afterwards is closed again by `shutdown`.
        """
        for directory in self._online:
            with going_on(directory):
                limit = directory.close_some(limit, now_ms)
            if limit < 0:
                return False
        return True

    def shutdown(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Close all logs; the next start needs no recovery."""
        for directory in self._online:
            with going_on(directory):
                directory.close(now_ms, broker_epoch)
