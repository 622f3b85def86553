"""The group coordinators of a node: loaded for the partitions that it leads, unloaded for others.

A coordinator is the one of a leader epoch; it knows what was in the log when that began, and
what it has appended since.
"""

from __future__ import annotations

from ...metadata import MetadataDelta, TopicIdPartition
from ...protocol import ErrorCode
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..topics import OFFSETS_TOPIC
from .coordinator_log import CoordinatorLog
from .coordinators import Coordinators

E = ErrorCode


class GroupCoordinators:
    """Loads and unloads the coordinators of a node."""

    def __init__(
        self,
        groups: Coordinators,
        log: CoordinatorLog,
        metadata: MetadataCache,
        machines: Machines,
    ) -> None:
        self._groups = groups
        self._log = log
        self.failed = log.failed
        self._metadata = metadata
        self._machines = machines
        self._epochs: dict[int, int] = {}
        """Partition -> the leader epoch of its coordinator here."""

    def published(self, delta: MetadataDelta, now: float) -> None:
        """Follow the leaders of the partitions, and forget the offsets of deleted topics."""
        deleted = set(delta.deleted_topics.values())
        if OFFSETS_TOPIC in deleted:
            for index in list(self._epochs):
                self._unload(index, E.NOT_COORDINATOR, now)
        elif deleted:
            self._groups.topics_deleted(delta.deleted_topics, now)
        topic = self._metadata.topics.get(OFFSETS_TOPIC)
        for key in delta.partitions if topic is not None else ():
            if topic is not None and key.topic_id == topic.topic_id:
                self._follow(key, now)

    def _follow(self, key: TopicIdPartition, now: float) -> None:
        index, replica = key.partition, self._machines.replica(key)
        epoch = self._epochs.get(index)
        if replica is None or not replica.is_leader:
            if epoch is not None:
                self._unload(index, E.NOT_COORDINATOR, now)
        elif epoch != replica.leader_epoch:
            self._load(index, replica.leader_epoch, now)

    def _load(self, index: int, epoch: int, now: float) -> None:
        self._epochs[index] = epoch
        self._groups.leader_changed(index, True, now)
        if index in self._log.lost:
            self._fail(index, now)
            return
        self._groups.start_expiration(now)

    def _fail(self, index: int, now: float) -> None:
        """Unload a coordinator whose log directory has failed; it is not loaded here again."""
        self._log.lost.discard(index)
        self._epochs.pop(index, None)
        self._groups.fail(index, now)

    def _unload(self, index: int, error: ErrorCode, now: float) -> None:
        self._epochs.pop(index, None)
        self._groups.unload(index, error, now)

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Send the responses that waited for the high watermark of a partition."""
        if key == self._log.key(key.partition):
            self._groups.committed(key.partition, offset, now)

    def reload_failed(self, now: float) -> None:
        """Load the partitions again to which an append has failed."""
        while self.failed:
            index = self.failed.pop()
            self._unload(index, E.COORDINATOR_NOT_AVAILABLE, now)
            key = self._log.key(index)
            if key is not None and self._machines.replica(key) is None:
                self._fail(index, now)
            elif key is not None:
                self._follow(key, now)

    def replica_changed(self, key: TopicIdPartition, now: float) -> None:
        """Unload the coordinator of a partition whose log directory has failed."""
        if key == self._log.key(key.partition) and self._machines.replica(key) is None:
            self._fail(key.partition, now)
