"""The replicas of one broker as a machine, as Kafka's ReplicaManager.

Events in, effects out; what an event completed is completed before `handle` returns.

    metadata ─▶ leaders, followers ─▶ Fetch ─▶ high watermark ─▶ delayed Produce, Fetch
                                         └──▶ ISR ─▶ AlterPartition
"""

from __future__ import annotations

from collections.abc import Callable

from ..messages.alter_partition_response import AlterPartitionResponse
from ..metadata import MetadataDelta, MetadataImage, PartitionRegistration, TopicIdPartition
from ..primitives import Message
from ..protocol import ErrorCode
from .alter_partition import AlterPartitions
from .broker import Broker
from .config import ReplicationConfig
from .effects import CONTROLLER, CheckpointHighWatermarks, Effect, SendRequest
from .events import (
    Event,
    LogsFailed,
    MetadataPublished,
    Registered,
    RequestReceived,
    ResponseReceived,
    ThrottleChanged,
)
from .fetcher import FollowerQuota, ReplicaFetcher
from .log.replica_log import LogOffline, ReplicaLog
from .partition import Partition
from .replicas import Replicas
from .requests import Requests
from .states import ReplicaState, Trigger
from .throttling import ReplicationQuota

OpenLog = Callable[[TopicIdPartition], ReplicaLog]


class ReplicaManager:
    """The replicas of one broker.

    open_log: returns the log of a replica, with its high watermark from the checkpoint.
    now: when the machine starts. Who has requests calls `appends`, `fetches`, `offsets` and
    `deletions`, then `finish`; `RequestReceived` does both.
    """

    partition_type: type[Partition] = Partition

    def __init__(
        self, broker_id: int, config: ReplicationConfig, open_log: OpenLog, now: float
    ) -> None:
        self.broker = Broker(broker_id, config)
        self.replicas = Replicas(self.broker)
        self._open_log = open_log
        self._requests = requests = Requests(self.replicas)
        self.fetches, self.appends = requests.fetches, requests.appends
        self.offsets, self.deletions = requests.offsets, requests.deletions
        self._purgatories = (
            self.fetches.purgatory,
            self.appends.purgatory,
            self.deletions.purgatory,
        )
        self._delayed = [each.waiting for each in self._purgatories]
        self._alter = AlterPartitions(self.replicas)
        self._quota = FollowerQuota(ReplicationQuota())
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._followed: dict[TopicIdPartition, int] = {}
        self._in_flight: dict[int, int] = {}
        """Token of a request -> its destination."""
        self._tokens = 0
        self._now = now
        self._shrink_at = now + config.replica_lag_time_max / 2
        self._checkpoint_at = now + config.high_watermark_checkpoint_interval

    @property
    def partitions(self) -> dict[TopicIdPartition, Partition]:
        """The replicas that are hosted here."""
        return self.replicas.hosted

    # -- the machine

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects."""
        self._now = now
        self._handle(event, now)
        return self.finish(now)

    def next_deadline(self) -> float:
        """Return when to call `advance`; there is always a next check of the ISRs."""
        due, checkpoint_at = self._shrink_at, self._checkpoint_at
        if checkpoint_at < due:
            due = checkpoint_at
        if any(self._delayed):
            for purgatory in self._purgatories:
                if purgatory.waiting and (earliest := purgatory.next_deadline()) < due:
                    due = earliest
        if self._alter.unsent or self._fetchers:
            now = self._now
            others = [self._alter.next_deadline(now) if self._alter.unsent else None]
            others += [each.next_deadline(now) for each in self._fetchers.values()]
            due = min([due, *(each for each in others if each is not None)])
        return due

    def advance(self, now: float) -> list[Effect]:
        """Do what is due."""
        self._now = now
        self.fetches.advance(now)
        self.appends.advance(now)
        self.deletions.advance(now)
        if now >= self._shrink_at:
            self._shrink_at = now + self.broker.config.replica_lag_time_max / 2
            for partition in self.partitions.values():
                partition.maybe_shrink_isr(now)
                if partition.isr.is_pending:
                    self.replicas.mark(partition.key)
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + self.broker.config.high_watermark_checkpoint_interval
            offsets = {key: each.log.high_watermark for key, each in self.partitions.items()}
            self.replicas.emit(CheckpointHighWatermarks(offsets))
        return self.finish(now)

    def finish(self, now: float) -> list[Effect]:
        """Complete what waited for changed partitions, and send what is due; return the effects."""
        self._now = now
        replicas = self.replicas
        fetches, appends, deletions = self._delayed
        if not (fetches or appends or deletions):
            replicas.unwatched += 1
        while replicas.changed and (partition := replicas.take_changed()) is not None:
            if appends:
                self.appends.check(partition)
            if fetches:
                self.fetches.check(partition, now)
            if deletions:
                self.deletions.check(partition)
            self._alter.submit(partition)
        proposals = self._alter.request(now) if self._alter.unsent else None
        if proposals is not None:
            version = self.broker.config.alter_partition_version
            self._send(CONTROLLER, version, proposals)
        for leader, fetcher in list(self._fetchers.items()) if self._fetchers else ():
            request = fetcher.request(now)
            if request is not None:
                self._send(leader, *request)
            elif fetcher.is_idle:
                del self._fetchers[leader]
        return replicas.take_effects() if replicas.effects else []

    def _send(self, destination: int, version: int, body: Message) -> None:
        self._tokens += 1
        self._in_flight[self._tokens] = destination
        self.replicas.emit(SendRequest(self._tokens, destination, version, body))

    # -- events

    def _handle(self, event: Event, now: float) -> None:
        match event:
            case Registered():
                self.broker.epoch = event.broker_epoch
            case MetadataPublished():
                self._apply_delta(event.image, event.delta, now)
            case RequestReceived():
                self._requests.handle(event, now)
            case ResponseReceived():
                self._response(event, now)
            case LogsFailed():
                for key in event.keys:
                    self._fail(key, now)
            case ThrottleChanged():
                self.fetches.quota.rate = event.leader_rate
                self.fetches.throttled = event.leader_replicas
                self._quota.quota.rate = event.follower_rate
                self._quota.partitions = event.follower_partitions
                for fetcher in self._fetchers.values():
                    fetcher.wake()

    def _response(self, event: ResponseReceived, now: float) -> None:
        destination = self._in_flight.pop(event.token, None)
        if destination == CONTROLLER:
            body = event.body if isinstance(event.body, AlterPartitionResponse) else None
            self._alter.handle(body, now)
        elif destination in self._fetchers:
            self._fetchers[destination].handle(event.body, now)

    # -- metadata

    def _apply_delta(self, image: MetadataImage, delta: MetadataDelta, now: float) -> None:
        self.broker.publish(image, delta)
        assigned: list[tuple[TopicIdPartition, PartitionRegistration]] = []
        stopped: list[TopicIdPartition] = []
        for key in delta.partitions:
            registration = image.partition(key)
            if registration is not None and self.broker.broker_id in registration.replicas:
                assigned.append((key, registration))
            else:
                stopped.append(key)
        self._stop(stopped, now)
        for key, registration in assigned:
            self._apply(key, image.topics[key.topic_id].name, registration, now)
        self._mark_affected(delta)

    def _mark_affected(self, delta: MetadataDelta) -> None:
        """Mark the partitions whose leader may do more now: brokers and configurations changed."""
        if not delta.brokers and not delta.configs:
            return
        for partition in self.partitions.values():
            if partition.is_leader:
                partition.maybe_increment_high_watermark(self._now)
                self.replicas.mark(partition.key)

    def _apply(
        self, key: TopicIdPartition, topic: str, registration: PartitionRegistration, now: float
    ) -> None:
        """Become leader or follower of a partition, unless its log directory has failed."""
        if key in self.replicas.offline:
            return
        partition = self.partitions.get(key)
        try:
            if partition is None:
                log = self._open_log(key)
                partition = self.partition_type(key, topic, log, self.broker)
                self.replicas.host(partition)
            was_leader = partition.is_leader
            is_new_epoch = partition.apply(registration, now)
        except LogOffline:
            self._fail(key, now)
            return
        self.replicas.mark(key)
        if was_leader and not partition.is_leader:
            self._leadership_lost(key)
        if not is_new_epoch:
            return
        self.fetches.leadership_changed(key, now)
        self._unfollow(key)
        if partition.state is ReplicaState.FETCHING:
            self._followed[key] = partition.leader
            self._fetcher(partition.leader).add(partition)

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        if leader not in self._fetchers:
            self._fetchers[leader] = ReplicaFetcher(leader, self.replicas, self._quota)
        return self._fetchers[leader]

    def _unfollow(self, key: TopicIdPartition) -> None:
        leader = self._followed.pop(key, None)
        if leader is not None and leader in self._fetchers:
            self._fetchers[leader].remove(key)

    def _leadership_lost(
        self, key: TopicIdPartition, error: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ) -> None:
        self.appends.leadership_lost(key, error)
        self.deletions.leadership_lost(key, error)

    def _fail(self, key: TopicIdPartition, now: float) -> None:
        """Take a replica offline: no log is left of it until the broker restarts (KIP-112)."""
        if key in self.replicas.offline:
            return
        self._unfollow(key)
        self.replicas.fail(key)
        self._leadership_lost(key, ErrorCode.KAFKA_STORAGE_ERROR)
        self.fetches.leadership_changed(key, now)

    def _stop(self, keys: list[TopicIdPartition], now: float) -> None:
        """Stop replicas that are no longer assigned to this broker; their logs stay.

        None is read again, also for what waits for another of them: their logs may be deleted.
        """
        deleted: list[Partition] = []
        for key in keys:
            offline = self.replicas.offline.pop(key, None)
            partition = self.partitions.get(key, offline)
            if partition is not None:
                deleted.append(partition)
                self._unfollow(key)
                self.replicas.remove(key)
                partition.change(Trigger.REMOVED)
        for partition in deleted:
            self._leadership_lost(partition.key)
            self.fetches.leadership_changed(partition.key, now)
