"""The replicas of one broker, by topic id and by topic name, and which of them changed.

Whoever changes a partition marks it; the replica manager then completes what waited for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..metadata import TopicIdPartition
from ..protocol import ErrorCode
from .broker import Broker
from .effects import Effect, HighWatermarkAdvanced, IsrChanged, ReplicaChanged
from .isr import Isr, committed_isr
from .log.replica_log import NO_EPOCH, ReplicaLog
from .partition import Partition
from .states import ReplicaState, Trigger

E = ErrorCode
NONE: Final = E.NONE
NO_TOPIC_ID: Final = bytes(16)
UNREPORTED: Final = (ReplicaState.STOPPED, -1, committed_isr(frozenset()))
LOG_END: Final = "log end"
HIGH_WATERMARK: Final = "high watermark"
LAST_STABLE: Final = "last stable offset"


@dataclass(slots=True)
class Growth:
    """How far a replica was read up to, in one measure, and how many bytes that was in all.

    The bytes only grow, also where the log is truncated or its start is deleted. unwatched: that of
    `Replicas` at the last time.
    """

    offset: int
    size: int
    unwatched: int

    def update(self, log: ReplicaLog, end: int) -> None:
        """Count the bytes that were added since the last time."""
        if end > self.offset:
            self.size += log.size_between(self.offset, end)
        self.offset = end


def bound(log: ReplicaLog, measure: str) -> int:
    """Return up to where followers or consumers read a log."""
    if measure == LOG_END:
        return log.log_end_offset
    return log.high_watermark if measure == HIGH_WATERMARK else log.last_stable_offset


class Replicas:
    """The replicas of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.hosted: dict[TopicIdPartition, Partition] = {}
        self.offline: dict[TopicIdPartition, Partition | None] = {}
        """Those in log directories that have failed; None: its log was never opened."""
        self.effects: list[Effect] = []
        self.watched: set[TopicIdPartition] = set()
        """Those whose high watermarks are reported, besides those of coordinators."""
        self.changes = 0
        """How often a partition was marked as changed."""
        self.unwatched = 0
        """How often partitions changed while nobody waited for bytes: they are not counted."""
        self.changed: dict[TopicIdPartition, None] = {}
        """The partitions that were marked; `take_changed` takes them."""
        self._growth: dict[TopicIdPartition, dict[str, Growth]] = {}
        self._watermarks: dict[TopicIdPartition, int] = {}
        self._reported: dict[TopicIdPartition, tuple[ReplicaState, int, Isr]] = {}

    def emit(self, effect: Effect) -> None:
        """Add an effect."""
        self.effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the effects, and forget them."""
        taken, self.effects = self.effects, []
        return taken

    # -- which there are

    def host(self, partition: Partition) -> None:
        """Add a replica."""
        self.hosted[partition.key] = partition
        self._growth[partition.key] = {}

    def remove(self, key: TopicIdPartition) -> None:
        """Forget a replica."""
        self.hosted.pop(key, None)
        self._growth.pop(key, None)
        self._reported.pop(key, None)
        self._watermarks.pop(key, None)

    def fail(self, key: TopicIdPartition) -> None:
        """Take a replica offline: its log directory has failed."""
        partition = self.hosted.get(key)
        self.remove(key)
        self.offline[key] = partition
        epoch = NO_EPOCH
        if partition is not None:
            partition.change(Trigger.DIRECTORY_FAILED)
            epoch = partition.leader_epoch
        self.emit(ReplicaChanged(key, ReplicaState.OFFLINE, epoch))

    def key_of(self, topic: str, topic_id: bytes, index: int) -> TopicIdPartition:
        """Return the key of a partition by id, or by name if there is no id."""
        if topic_id == NO_TOPIC_ID:
            topic_id = self.broker.image.topic_ids.get(topic, NO_TOPIC_ID)
        return TopicIdPartition(topic_id, index)

    def find(self, topic: str, topic_id: bytes, index: int) -> tuple[Partition | None, ErrorCode]:
        """Find a partition of a request, or return the error of not having it."""
        key = self.key_of(topic, topic_id, index)
        partition = self.hosted.get(key)
        if partition is not None:
            return partition, NONE
        if key in self.offline:
            return None, E.KAFKA_STORAGE_ERROR
        if self.broker.image.partition(key) is not None:
            return None, E.NOT_LEADER_OR_FOLLOWER
        unknown_id = topic_id != NO_TOPIC_ID and topic_id not in self.broker.image.topics
        return None, E.UNKNOWN_TOPIC_ID if unknown_id else E.UNKNOWN_TOPIC_OR_PARTITION

    # -- which changed

    def mark(self, key: TopicIdPartition) -> None:
        """Mark a partition as changed."""
        self.changes += 1
        self.changed[key] = None

    def take_changed(self) -> Partition | None:
        """Remove and return a changed partition; report its new state."""
        changed = self.changed
        while changed:
            key = next(iter(changed))
            del changed[key]
            partition = self.hosted.get(key)
            if partition is not None:
                self._report(partition)
                return partition
        return None

    def size_read(self, key: TopicIdPartition, measure: str) -> int:
        """Return how many bytes a partition has grown by in a measure, since that is looked at."""
        of_partition, log = self._growth[key], self.hosted[key].log
        end, growth = bound(log, measure), of_partition.get(measure)
        if growth is None:
            of_partition[measure] = Growth(end, 0, self.unwatched)
            return 0
        if growth.unwatched == self.unwatched:
            growth.update(log, end)
        else:
            growth.offset, growth.unwatched = end, self.unwatched
        return growth.size

    def _report(self, partition: Partition) -> None:
        key = partition.key
        new = partition.state, partition.leader_epoch, partition.isr
        old = self._reported.get(key, UNREPORTED)
        has_changed = new != old
        if has_changed and new[:2] != old[:2]:
            self.emit(ReplicaChanged(key, *new[:2]))
        if partition.topic in self.broker.config.coordinator_topics or key in self.watched:
            watermark = partition.log.high_watermark
            if watermark > self._watermarks.get(key, 0):
                self.emit(HighWatermarkAdvanced(key, watermark))
            self._watermarks[key] = watermark
        if not has_changed:
            return
        self._reported[key] = new
        isr = partition.isr
        if isr != old[2] and partition.is_leader:
            self.emit(IsrChanged(key, isr.state, isr.proposed if isr.is_pending else isr.committed))
