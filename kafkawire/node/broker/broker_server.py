"""The broker of a node: its logs, its replicas, its lifecycle, and the metadata that it observes.

Metadata is published only from the broker's own registration on, so that a restarted broker
never leads or follows by what was true of an earlier incarnation. A log directory that fails takes
its replicas offline (KIP-112, KIP-858); without the first, or without any, the broker cannot go on.
"""

# over 300 lines: one part of a node, with all that it has for the others

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ...broker.topics import INTERNAL
from ...controller import Committed, SnapshotLoaded
from ...metadata import MetadataDelta, MetadataLoader, TopicIdPartition, everything, slices
from ...primitives import Message
from ...replication import Effect as ReplicationEffect
from ...replication import (
    LogOffline,
    LogsFailed,
    MetadataPublished,
    Registered,
    ReplicaManager,
    RequestReceived,
    Respond,
    ResponseReceived,
)
from ...storage import (
    CorruptFile,
    Damaged,
    Disk,
    KafkaStorageError,
    LogManager,
    LogManagerConfig,
    TopicPartition,
)
from ..config import NodeConfig
from ..effects import (
    BrokerRefused,
    BrokerStateChanged,
    DirectoryFailed,
    LogRecovered,
    LogSetAside,
    PartitionDamaged,
    Published,
    SegmentRolled,
)
from ..lifecycle import NO_EPOCH, BrokerLifecycleManager, BrokerState
from . import assignments, log_dirs
from .assignments import AssignmentsManager
from .controller_channel import Owner
from .publisher import LogPublisher
from .replica_log import StoredReplicaLog
from .throttles import Throttles

Output = (
    ReplicationEffect
    | Published
    | BrokerStateChanged
    | BrokerRefused
    | DirectoryFailed
    | LogRecovered
    | LogSetAside
    | PartitionDamaged
    | SegmentRolled
)


SLICE: Final = 16
"""Partitions whose logs are opened, closed or deleted before other events are handled: opening one
takes six fsyncs.
"""


class Due(NamedTuple):
    """A request to the controller that is due. timeout: in seconds."""

    owner: Owner
    body: Message
    version: int
    timeout: float


class Unpublished(NamedTuple):
    """A slice of what changed. deleted: id -> name of the topics that the whole change deletes."""

    delta: MetadataDelta
    deleted: Mapping[bytes, str]


class BrokerServer:
    """The broker of a node.

    disks: name of a log directory -> its disk. Raises KafkaStorageError for one that fails.
    """

    # over 40 lines: composition: a line per part
    def __init__(
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        new_uuid: Callable[[], bytes],
        now_ms: Callable[[], int],
        now: float,
    ) -> None:
        self.config = config
        self.loader = MetadataLoader()
        self.logs = LogManager(
            disks,
            LogManagerConfig(
                config.cluster_id,
                config.node_id,
                max_producers=config.bounds.producers,
                **config.log_intervals,
            ),
            new_uuid,
        )
        self._directories = self.logs.directories
        self._now_ms = now_ms
        self._changes: list[Output] = []
        self._reported: set[PartitionDamaged] = set()
        for each in self._directories:
            each.on_roll = self._rolled
        self._load_logs()
        self._offline = self.check_directories()
        self.lifecycle = BrokerLifecycleManager(
            config,
            new_uuid(),
            self.logs.directory_ids,
            self.logs.clean_shutdown_epoch,
            now,
        )
        replication = replace(config.replication, static=config.static, coordinator_topics=INTERNAL)
        self.replicas = ReplicaManager(config.node_id, replication, self._open_log, now)
        self._publisher = LogPublisher(self.logs, config.node_id, config.static)
        self._throttles = Throttles(config.node_id)
        self._assignments = AssignmentsManager(config.node_id, config.retry_backoff)
        self._published = False
        self._unpublished: deque[Unpublished] = deque()
        """What is still to be published, in slices of SLICE partitions."""
        self._slice_at: float | None = None
        """When to go on with slices of work; None if none is left."""
        self._state: BrokerState | None = None

    def _load_logs(self) -> None:
        """Load all logs, and report those that were recovered or are damaged."""
        for log in self.logs.start(self._now_ms()):
            if isinstance(log, Damaged):
                reason = f"{log.directory}/{log.error}"
                self._changes.append(PartitionDamaged(log.partition, reason))
            elif not log.clean_shutdown:
                recovered = LogRecovered(log.partition, log.log_end_offset, log.truncated_bytes)
                self._changes.append(recovered)
        self.logs.on_damage = self._damaged

    # -- log directories

    def check_directories(self) -> set[str]:
        """Name the offline directories; KafkaStorageError if the broker cannot go on."""
        first = self._directories[0]
        if first.offline:
            raise KafkaStorageError(first.name, first.offline)
        return {each.name for each in self._directories if each.offline}

    def failures(self, now: float) -> list[Output]:
        """Take the replicas offline whose directories have failed since the last call."""
        offline = self.check_directories()
        if offline == self._offline:
            return []
        failed = [
            each
            for each in self._directories
            if each.name in offline and each.name not in self._offline
        ]
        self._offline = offline
        outputs: list[Output] = []
        for each in failed:
            outputs.append(DirectoryFailed(each.name, each.offline or ""))
            if each.directory_id is not None:
                self.lifecycle.directory_failed(each.directory_id, now)
        keys = tuple(
            key
            for key, replica in self.replicas.partitions.items()
            if self.logs.directory_of(TopicPartition(replica.topic, key.partition)) in failed
        )
        return [*outputs, *self.replicas.handle(LogsFailed(keys), now)]

    def _assign(self, keys: Iterable[TopicIdPartition]) -> None:
        """Report the directories of replicas where they are not those of the metadata."""
        image, broker_id = self.loader.image, self.config.node_id
        registered = image.brokers.get(broker_id)
        if registered is None or not registered.directories:
            return  # the metadata.version has none
        for key in keys:
            self._assignments.forget(key)
            topic, partition = image.topics.get(key.topic_id), image.partition(key)
            if topic is None or partition is None or broker_id not in partition.replicas:
                continue
            located = self.logs.directory_of(TopicPartition(topic.name, key.partition))
            directory = None if located is None else located.directory_id
            if directory is not None and directory != partition.directory(broker_id):
                self._assignments.assign(key, directory)

    # -- metadata

    @property
    def is_published(self) -> bool:
        """Whether the broker acts on metadata."""
        return self._published

    def committed(self, event: Committed, now: float) -> list[Output]:
        """Take over committed records."""
        return self._changed(self.loader.apply(event.records, event.base_offset), now)

    def snapshot_loaded(self, event: SnapshotLoaded, now: float) -> list[Output]:
        """Take over a snapshot."""
        return self._changed(self.loader.load_snapshot(event.records, event.last_offset), now)

    def _changed(self, delta: MetadataDelta, now: float) -> list[Output]:
        if self._published:
            self._publisher.publish(self.loader.image, delta)
            return self._publish_slices(delta, now)
        return self.maybe_publish_first(now)

    def maybe_publish_first(self, now: float) -> list[Output]:
        """Publish all metadata once the broker's registration is in it."""
        epoch = self.lifecycle.epoch
        if self._published or epoch == NO_EPOCH or self.loader.offset < epoch:
            return []
        image, delta = self.loader.image, everything(self.loader.image)
        self._published = True
        for stray in self._publisher.set_strays_aside(image):
            self._changes.append(LogSetAside(*stray))
        self._publisher.publish(image, delta)
        return self._publish_slices(delta, now)

    def _publish_slices(self, delta: MetadataDelta, now: float) -> list[Output]:
        """Publish the first slice of a delta, unless others wait; `advance` publishes the rest.

        A client that is faster gets NOT_LEADER_OR_FOLLOWER, and tries again.
        """
        waited = bool(self._unpublished)
        deleted = delta.deleted_topics
        self._unpublished.extend(Unpublished(each, deleted) for each in slices(delta, SLICE))
        return [] if waited else self._publish_next(now)

    @property
    def is_publishing(self) -> bool:
        """Whether slices of the metadata that was read are still to be published to replicas."""
        return bool(self._unpublished)

    def _publish_next(self, now: float) -> list[Output]:
        outputs = self._publish(*self._unpublished.popleft(), now)
        self._slice_at = now if self._unpublished else None
        if not self._unpublished and self.lifecycle.state is BrokerState.STARTING:
            self.lifecycle.published(now)
        return outputs

    def _publish(
        self, delta: MetadataDelta, deleted: Mapping[bytes, str], now: float
    ) -> list[Output]:
        image = self.loader.image
        self._publisher.delete_strays(image, delta.partitions, deleted, self._now_ms())
        throttled = self._throttles.publish(image, delta)
        outputs: list[Output] = [*self.replicas.handle(MetadataPublished(image, delta), now)]
        if throttled is not None:
            outputs += self.replicas.handle(throttled, now)
        self._assign(delta.partitions)
        return [*outputs, Published(image, delta)]

    def _open_log(self, key: TopicIdPartition) -> StoredReplicaLog:
        try:
            partition = self._publisher.open(self.loader.image, key, self._now_ms())
        except KafkaStorageError as error:
            raise LogOffline(str(error)) from None
        return StoredReplicaLog(self.logs, partition, self._now_ms, self._damaged)

    def _damaged(self, partition: TopicPartition, error: CorruptFile) -> None:
        """Report damage that a read has found, once."""
        directory = self.logs.directory_of(partition)
        path = error if directory is None else f"{directory.name}/{error}"
        damage = PartitionDamaged(partition, str(path))
        if damage not in self._reported:
            self._reported.add(damage)
            self._changes.append(damage)

    # -- requests

    def request(self, token: int, version: int, body: Message, now: float) -> list[Output]:
        """Handle a request that concerns replicas, or log directories."""
        operation = log_dirs.OPERATIONS.get(type(body))
        if operation is not None:
            return [Respond(token, operation(self.logs, body, self._now_ms()))]
        return [*self.replicas.handle(RequestReceived(token, version, body), now)]

    def response(self, token: int, body: Message | None, now: float) -> list[Output]:
        """Handle the response to a request of the replica manager."""
        return [*self.replicas.handle(ResponseReceived(token, body), now)]

    # -- lifecycle

    def due(self, now: float) -> Iterator[Due]:
        """Iterate over the requests to the controller that are due."""
        request = self.lifecycle.request(self.loader.offset, now)
        if request is not None:
            yield Due(Owner.LIFECYCLE, *request, self.config.session_timeout / 2)
        if self._published:
            body = self._assignments.request(self.lifecycle.epoch, now)
            if body is not None:
                timeout = self.config.request_timeout
                yield Due(Owner.ASSIGNMENTS, body, assignments.VERSION, timeout)

    def assigned(self, body: Message | None, now: float) -> None:
        """Handle the response to a report of directories."""
        self._assignments.handle(body, now)

    def lifecycle_response(self, body: Message | None, now: float) -> list[Output]:
        """Handle the response to a registration or a heartbeat."""
        before, refused = self.lifecycle.epoch, self.lifecycle.error
        self.lifecycle.handle(body, now)
        outputs: list[Output] = []
        if self.lifecycle.error not in (refused, 0):
            outputs.append(BrokerRefused(self.lifecycle.error))
        if self.lifecycle.epoch != before:
            outputs += self.replicas.handle(Registered(self.lifecycle.epoch), now)
        return [*outputs, *self.maybe_publish_first(now)]

    def _rolled(self, partition: TopicPartition, base_offset: int) -> None:
        self._changes.append(SegmentRolled(partition, base_offset))

    @property
    def has_news(self) -> bool:
        """Whether `failures` or `changes` has something to return."""
        if self._changes or self.lifecycle.state is not self._state:
            return True
        for each in self._directories:
            if each.disk.offline is not None and each.name not in self._offline:
                return True
        return False

    def changes(self) -> list[Output]:
        """Report what the logs did, and the state if it changed."""
        changes, self._changes = self._changes, []
        if self.lifecycle.state is not self._state:
            self._state = self.lifecycle.state
            changes.append(BrokerStateChanged(self._state))
        return changes

    def next_deadline(self) -> float | None:
        """Return when to call `advance`, or when the lifecycle has something to send.

        Not that of the replicas: theirs changes with each request.
        """
        times: list[float | None] = [self.lifecycle.next_deadline()]
        if self._published:
            times.append(self._assignments.next_deadline())
        due_ms = self.logs.next_deadline()
        times.append(None if due_ms is None else self.config.time_of(due_ms))
        times.append(self._slice_at)
        return min((each for each in times if each is not None), default=None)

    def advance(self, now: float) -> list[Output]:
        """Do what is due."""
        due_ms = self.logs.next_deadline()
        if due_ms is not None and due_ms <= self._now_ms():
            moving = self.logs.moves.keys()
            self.logs.advance(self._now_ms())
            self._moved(moving - self.logs.moves.keys())
        outputs: list[Output] = [*self.replicas.advance(now)]
        if self._unpublished:
            outputs += self._publish_next(now)
        return outputs

    def _moved(self, partitions: Iterable[TopicPartition]) -> None:
        ids = self.loader.image.topic_ids
        self._assign(
            TopicIdPartition(ids[each.topic], each.partition)
            for each in partitions
            if each.topic in ids
        )

    def close_logs(self, now: float) -> bool:
        """Close a slice of the logs; return whether all are closed."""
        closed = self.logs.close_some(SLICE, self._now_ms())
        self._slice_at = None if closed else now
        return closed

    def shut_down(self) -> None:
        """Close the logs: the next start needs no recovery."""
        self.logs.shutdown(self._now_ms(), self.lifecycle.epoch)
