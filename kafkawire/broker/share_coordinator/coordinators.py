"""The share coordinators of a node: one for each partition of `__share_group_state` that it leads.

Invariant: a coordinator is the one of a leader epoch, as those of groups. A result is returned when
what it rests on is committed, or with an error when its coordinator is unloaded, or after
`share.coordinator.write.timeout.ms`.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ...metadata import MetadataDelta, TopicIdPartition
from ...primitives import Message, Structure
from ...protocol import ErrorCode
from ..context import Context
from ..events import ShareStatesDue, ShareWriteExpired
from ..groups.coordinator_log import CoordinatorLog
from ..groups.coordinators import partition_for
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..topics import NO_LEADER, SHARE_STATE_TOPIC
from .coordinator import ShareCoordinator
from .requests import failed, partitions_of, response_of
from .state import ShareKey

E = ErrorCode
PRUNE_INTERVAL: Final = 300.0
"""Seconds between two checks for records that no state needs, as in Kafka."""
TIMEOUT: Final = "share.coordinator.write.timeout.ms"
Then = Callable[[Any, float], None]
"""Called with the result of a share partition."""


@dataclass(slots=True)
class Waiting:
    """A result that waits until its partition is committed up to an offset."""

    number: int
    offset: int
    key: ShareKey
    data: Structure
    result: Structure
    then: Then | None


def coordinator_key(key: ShareKey) -> str:
    """Return the key of a share partition in FindCoordinator: group:topic id:partition."""
    topic_id = urlsafe_b64encode(key.topic_id).decode("ascii").rstrip("=")
    return f"{key.group_id}:{topic_id}:{key.partition}"


class ShareCoordinators:
    """Loads and unloads the coordinators of a node, and hands requests to them."""

    def __init__(
        self, node_id: int, metadata: MetadataCache, machines: Machines, context: Context
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._machines = machines
        self._context = context
        self._log = log = CoordinatorLog(metadata, machines, SHARE_STATE_TOPIC)
        self.failed = log.failed
        self._loaded: dict[int, ShareCoordinator] = {}
        self._waiting: dict[int, deque[Waiting]] = {}
        """Partition -> the results that wait for it, in the order of their offsets."""
        self._by_number: dict[int, Waiting] = {}
        self._count = 0

    # -- where coordinators are

    def leader_of(self, key: str) -> tuple[int, int]:
        """Return the partition of a coordinator key and its leader, NO_LEADER for none."""
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return 0, NO_LEADER
        index = partition_for(key, len(topic.partitions))
        return index, topic.partitions[index].leader_id

    def find(self, key: ShareKey) -> ShareCoordinator | ErrorCode:
        """Return the coordinator of a share partition, if it is here."""
        index, leader = self.leader_of(coordinator_key(key))
        if leader != self._node_id:
            return E.COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else E.NOT_COORDINATOR
        return self._loaded.get(index, E.COORDINATOR_LOAD_IN_PROGRESS)

    # -- requests

    def handle(self, body: Message, then: Callable[[Message, float], None], now: float) -> None:
        """Handle a request of another broker; `then` is called with its response."""
        wanted = dict(partitions_of(body))
        results: dict[ShareKey, Structure] = {}
        if not wanted:
            then(response_of(body, results), now)

        def collect(key: ShareKey) -> Then:
            def one(result: Structure, now: float) -> None:
                results[key] = result
                if len(results) == len(wanted):
                    ordered = {each: results[each] for each in wanted}
                    then(response_of(body, ordered), now)

            return one

        for key, data in wanted.items():
            self.submit(key, data, collect(key), now)

    def submit(self, key: ShareKey, data: Structure, then: Then, now: float) -> None:
        """Handle the part of a request for one share partition; `then` gets its result."""
        if not key.group_id:
            then(failed(key, data, E.INVALID_REQUEST, "The group id cannot be empty."), now)
            return
        if key.partition < 0:
            message = "The partition id cannot be a negative number."
            then(failed(key, data, E.INVALID_REQUEST, message), now)
            return
        coordinator = self.find(key)
        if isinstance(coordinator, ErrorCode):
            then(failed(key, data, coordinator), now)
            return
        if self._metadata.topics.by_id(key.topic_id) is None and key not in coordinator.states:
            then(failed(key, data, E.UNKNOWN_TOPIC_OR_PARTITION), now)
            return
        result = coordinator.handle(key, data, now)
        if not coordinator.pending:
            then(result, now)
            return
        self._count += 1
        waiting = Waiting(self._count, coordinator.pending, key, data, result, then)
        self._waiting.setdefault(coordinator.index, deque()).append(waiting)
        self._by_number[waiting.number] = waiting
        deadline = now + self._context.settings.seconds(TIMEOUT)
        self._context.deadlines.set(ShareWriteExpired(waiting.number), deadline)

    def _finish(self, waiting: Waiting, error: ErrorCode, now: float) -> None:
        """Return a result, or an error; once."""
        then, waiting.then = waiting.then, None
        if then is None:
            return
        del self._by_number[waiting.number]
        self._context.deadlines.cancel(ShareWriteExpired(waiting.number))
        then(failed(waiting.key, waiting.data, error) if error else waiting.result, now)

    def expire(self, due: ShareWriteExpired, now: float) -> None:
        """Fail a result whose records were not committed in time."""
        self._finish(self._by_number[due.number], E.COORDINATOR_NOT_AVAILABLE, now)

    # -- metadata

    def published(self, delta: MetadataDelta, now: float) -> None:
        """Follow the leaders of the partitions, and delete the states of deleted topics."""
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            for index in list(self._loaded):
                self._unload(index, now)
            return
        for key in delta.partitions:
            if key.topic_id == topic.topic_id:
                self._follow(key, now)
        for coordinator in list(self._loaded.values()) if delta.deleted_topics else ():
            coordinator.topics_deleted(delta.deleted_topics, now)

    def _follow(self, key: TopicIdPartition, now: float) -> None:
        index, replica = key.partition, self._machines.replica(key)
        loaded = self._loaded.get(index)
        if replica is None or not replica.is_leader:
            self._unload(index, now)
        elif loaded is None or loaded.epoch != replica.leader_epoch:
            self._unload(index, now)
            self._load(index, replica.leader_epoch)
            if ShareStatesDue() not in self._context.deadlines:
                self._context.deadlines.set(ShareStatesDue(), now + PRUNE_INTERVAL)

    def _load(self, index: int, epoch: int) -> None:
        coordinator = ShareCoordinator(index, epoch, self._log, self._context)
        coordinator.load()
        if index in self._log.lost:
            self._log.lost.discard(index)
        else:
            self._loaded[index] = coordinator

    def _unload(self, index: int, now: float) -> None:
        self._loaded.pop(index, None)
        for waiting in self._waiting.pop(index, ()):
            self._finish(waiting, E.NOT_COORDINATOR, now)

    def prune(self, now: float) -> None:
        """Delete the records that no state needs, and schedule the next check."""
        for coordinator in list(self._loaded.values()):
            coordinator.prune(now)
        self._context.deadlines.set(ShareStatesDue(), now + PRUNE_INTERVAL)

    # -- the machines

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Return the results that waited for the high watermark of a partition."""
        coordinator = self._loaded.get(key.partition)
        if coordinator is None or key != self._log.key(key.partition):
            return
        coordinator.committed(offset)
        waiting = self._waiting.get(key.partition)
        while waiting and waiting[0].offset <= offset:
            self._finish(waiting.popleft(), E.NONE, now)
        if not waiting:
            self._waiting.pop(key.partition, None)

    def replica_changed(self, key: TopicIdPartition, now: float) -> None:
        """Unload the coordinator of a partition whose log directory has failed."""
        if key == self._log.key(key.partition) and self._machines.replica(key) is None:
            self._unload(key.partition, now)

    def reload_failed(self, now: float) -> None:
        """Load the partitions again to which an append has failed."""
        while self.failed:
            index = self.failed.pop()
            self._unload(index, now)
            key = self._log.key(index)
            if key is not None:
                self._follow(key, now)
