"""The share partitions of a broker: loaded when a member first fetches them, stored as they change.

Invariant: a share partition is the one of a leader epoch; it is forgotten when that ends, when its
group has no sessions here any more, or when the share coordinator knows a later state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from ...messages.read_share_group_state_request import PartitionData as ReadData
from ...messages.write_share_group_state_request import PartitionData as WriteData
from ...messages.write_share_group_state_request import StateBatch as WriteBatch
from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ...protocol.error_code import error_of
from ...replication import LogOffline, Partition
from ..context import Context
from ..events import SharePartitionDue
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..share_coordinator.persister import Persister
from ..share_coordinator.state import ShareKey, state_batches
from .config import ShareConfig, share_config
from .dead_letter_batch import DeadLetter
from .dead_letters import DeadLetters
from .log_reading import OPEN, initial_offset
from .partition import SharePartition, Undeliverable, Write

E = ErrorCode
SHOWN: Final = {
    E.COORDINATOR_LOAD_IN_PROGRESS: E.COORDINATOR_NOT_AVAILABLE,
    E.FENCED_LEADER_EPOCH: E.NOT_LEADER_OR_FOLLOWER,
    E.FENCED_STATE_EPOCH: E.NOT_LEADER_OR_FOLLOWER,
    E.NETWORK_EXCEPTION: E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR: E.COORDINATOR_NOT_AVAILABLE,
}
"""An error of a share coordinator -> that of members, where they differ."""
OUTDATED: Final = frozenset(
    {
        E.FENCED_LEADER_EPOCH,
        E.FENCED_STATE_EPOCH,
        E.GROUP_ID_NOT_FOUND,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which a share partition is loaded again."""
Changed = Callable[[ShareKey, float], None]
Stored = Callable[[ErrorCode, float], None]


class SharePartitions:
    """The share partitions by key. changed: called when records may be acquired, or errors met."""

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        machines: Machines,
        persister: Persister,
        dead_letters: DeadLetters,
        changed: Changed,
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._machines = machines
        self._persister = persister
        self._dead_letters = dead_letters
        self._changed = changed
        self._active: dict[ShareKey, SharePartition] = {}
        self._by_partition: dict[TopicIdPartition, set[ShareKey]] = {}
        self._loading: dict[ShareKey, int] = {}
        """Share partition -> the leader epoch for which it is loaded."""
        self._failed: dict[ShareKey, ErrorCode] = {}
        """Why share partitions could not be loaded, until a member gets to know."""

    def __len__(self) -> int:
        return len(self._active)

    def config(self, group_id: str) -> ShareConfig:
        """Return the settings of a group."""
        context = self._context
        return share_config(context.settings, self._metadata, context.release, group_id)

    # -- finding

    def replica(self, key: TopicIdPartition) -> Partition | ErrorCode:
        """Return the replica of a partition that this broker leads."""
        topic = self._metadata.topics.by_id(key.topic_id)
        if topic is None:
            return E.UNKNOWN_TOPIC_ID
        if topic.partition(key.partition) is None:
            return E.UNKNOWN_TOPIC_OR_PARTITION
        replica = self._machines.replica(key)
        return E.NOT_LEADER_OR_FOLLOWER if replica is None or not replica.is_leader else replica

    def find(
        self, key: ShareKey, now: float
    ) -> tuple[SharePartition, Partition] | ErrorCode | None:
        """Return a share partition and its replica; None while it is loaded."""
        replica = self.replica(TopicIdPartition(key.topic_id, key.partition))
        if isinstance(replica, ErrorCode):
            return replica
        share = self._current(key, replica)
        if share is not None:
            return share, replica
        if key in self._failed:
            return self._failed.pop(key)
        if self._loading.get(key) != replica.leader_epoch:
            self._load(key, replica.leader_epoch, now)
        share = self._active.get(key)
        return None if share is None else (share, replica)

    def loaded(self, key: ShareKey) -> SharePartition | ErrorCode:
        """Return a share partition that a member has fetched."""
        replica = self.replica(TopicIdPartition(key.topic_id, key.partition))
        if isinstance(replica, ErrorCode):
            return replica
        return self._current(key, replica) or E.UNKNOWN_TOPIC_OR_PARTITION

    def _current(self, key: ShareKey, replica: Partition) -> SharePartition | None:
        share = self._active.get(key)
        if share is not None and share.leader_epoch != replica.leader_epoch:
            self.forget(key)
            return None
        return share

    # -- loading

    def _load(self, key: ShareKey, leader_epoch: int, now: float) -> None:
        self._loading[key] = leader_epoch
        data = ReadData(partition=key.partition, leader_epoch=leader_epoch)
        self._persister.submit(key, data, partial(self._read, key, leader_epoch), now)

    def _read(self, key: ShareKey, leader_epoch: int, result: Any, now: float) -> None:
        """Begin with the state that the share coordinator has."""
        if self._loading.get(key) != leader_epoch:
            return
        del self._loading[key]
        error = error_of(result.error_code)
        replica = self.replica(TopicIdPartition(key.topic_id, key.partition))
        if isinstance(replica, ErrorCode):
            error = replica
        elif not error and replica.leader_epoch == leader_epoch:
            try:
                self._begin(key, replica, result, now)
            except LogOffline:
                error = E.KAFKA_STORAGE_ERROR
        if error:
            self._failed[key] = SHOWN.get(error, error)
        self._changed(key, now)

    def _begin(self, key: ShareKey, replica: Partition, result: Any, now: float) -> None:
        start = result.start_offset
        if start == OPEN:
            config = self.config(key.group_id)
            start = initial_offset(replica, config, self._context.wall_ms(now))
        share = SharePartition(
            replica.leader_epoch,
            result.state_epoch,
            start,
            state_batches(result.state_batches),
            lambda: self.config(key.group_id),
        )
        share.log_starts_at(replica.log.log_start_offset)
        self._active[key] = share
        self._by_partition.setdefault(replica.key, set()).add(key)
        self._machines.watch(replica.key, True)
        self._write_dead_letters(key, share, share.resumed(), now)

    # -- storing

    def store(
        self, key: ShareKey, share: SharePartition, write: Write, then: Stored, now: float
    ) -> None:
        """Store what changed in a share partition; `then` gets the error."""
        self._schedule(key, share)
        if not write.batches:
            then(E.NONE, now)
            return
        data = WriteData(
            partition=key.partition,
            state_epoch=share.state_epoch,
            leader_epoch=share.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.complete_count,
            state_batches=[WriteBatch(**each._asdict()) for each in write.batches],
        )

        def stored(result: Any, now: float) -> None:
            error = error_of(result.error_code)
            undeliverable = share.written(write, not error)
            if self._active.get(key) is share:
                self._schedule(key, share)
                if error in OUTDATED:
                    self.forget(key)
            self._changed(key, now)
            then(SHOWN.get(error, error), now)
            self._write_dead_letters(key, share, undeliverable, now)

        self._persister.submit(key, data, stored, now)

    def _write_dead_letters(
        self, key: ShareKey, share: SharePartition, records: Iterable[Undeliverable], now: float
    ) -> None:
        """Write records to the dead letter queue, then archive them; also where that fails."""
        for each in records:
            first, last, deliveries, cause = each

            def archive(now: float, first: int = first, last: int = last) -> None:
                self.store(key, share, share.archive(first, last), lambda _error, _now: None, now)
                self._changed(key, now)

            self._dead_letters.write(DeadLetter(key, first, last, deliveries, cause), archive, now)

    def acquired(self, key: ShareKey) -> None:
        """Take note that records were acquired: their locks will end."""
        share = self._active.get(key)
        if share is not None:
            self._schedule(key, share)

    def _schedule(self, key: ShareKey, share: SharePartition) -> None:
        if self._active.get(key) is share:
            self._context.deadlines.set(SharePartitionDue(*key), share.next_deadline())

    def due(self, due: SharePartitionDue, now: float) -> None:
        """Release the records whose acquisition locks have ended."""
        key = ShareKey(due.group_id, due.topic_id, due.partition)
        share = self._active[key]
        self.store(key, share, share.advance(now), lambda _error, _now: None, now)
        self._changed(key, now)

    def release(self, key: ShareKey, member_id: str, then: Stored, now: float) -> None:
        """Release what a member has of a share partition."""
        share = self._active.get(key)
        if share is None:
            then(E.NONE, now)
        else:
            self.store(key, share, share.release(member_id), then, now)

    # -- forgetting

    def forget(self, key: ShareKey) -> None:
        """Forget a share partition."""
        self._loading.pop(key, None)
        self._failed.pop(key, None)
        self._context.deadlines.cancel(SharePartitionDue(*key))
        if self._active.pop(key, None) is None:
            return
        of = TopicIdPartition(key.topic_id, key.partition)
        self._by_partition[of].discard(key)
        if not self._by_partition[of]:
            del self._by_partition[of]
            self._machines.watch(of, False)

    def of_partition(self, key: TopicIdPartition) -> list[ShareKey]:
        """Return the share partitions of a partition, by all groups."""
        return sorted(self._by_partition.get(key, ()))

    def of_group(self, group_id: str) -> list[ShareKey]:
        """Return the share partitions of a group."""
        return [each for each in self._active if each.group_id == group_id]

    def forget_group(self, group_id: str) -> None:
        """Forget the share partitions of a group: it has no sessions here any more."""
        for key in {*self._active, *self._loading, *self._failed}:
            if key.group_id == group_id:
                self.forget(key)

    def published(self, now: float) -> None:
        """Forget the share partitions of partitions that have another leader, or are deleted."""
        for key, share in list(self._active.items()):
            replica = self.replica(TopicIdPartition(key.topic_id, key.partition))
            if isinstance(replica, ErrorCode) or replica.leader_epoch != share.leader_epoch:
                self.forget(key)
                self._changed(key, now)
