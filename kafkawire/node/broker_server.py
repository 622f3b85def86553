"""The broker of a node: its logs, its replicas, its life, and the metadata that it observes.

Law: metadata is published only from the broker's own registration on, so that a restarted broker
never leads or follows by what was true of an earlier incarnation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..controller import Committed, SnapshotLoaded
from ..metadata import MetadataDelta, MetadataLoader, TopicIdPartition, everything
from ..primitives import Message
from ..replication import Effect as ReplicationEffect
from ..replication import (
    Event,
    MetadataPublished,
    Registered,
    ReplicaManager,
    RequestReceived,
    ResponseReceived,
)
from ..storage import Disk, KafkaStorageError, LogManager, LogManagerConfig
from .config import NodeConfig
from .effects import BrokerRefused, BrokerStateChanged, Published
from .lifecycle import NO_EPOCH, BrokerLifecycleManager, BrokerState
from .publisher import LogPublisher
from .replica_log import StoredReplicaLog
from .throttles import Throttles

Output = ReplicationEffect | Published | BrokerStateChanged | BrokerRefused


class BrokerServer:
    """The broker of a node.

    disks: name of a log directory -> its disk. Raises KafkaStorageError for one that fails.
    """

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
            LogManagerConfig(config.cluster_id, config.node_id, **config.log_intervals),
            new_uuid,
        )
        self._now_ms = now_ms
        self.logs.start(now_ms())
        self.check_directories()
        self.lifecycle = BrokerLifecycleManager(
            config,
            new_uuid(),
            self.logs.directory_ids,
            self.logs.clean_shutdown_epoch,
            now,
        )
        replication = replace(config.replication, static=config.static)
        self.replicas = ReplicaManager(config.node_id, replication, self._open_log, now)
        self._publisher = LogPublisher(self.logs, config.node_id, config.static)
        self._throttles = Throttles(config.node_id)
        self._published = False
        self._state: BrokerState | None = None

    def check_directories(self) -> None:
        """Raise KafkaStorageError if a log directory is offline."""
        for name, reason in self.logs.offline_directories.items():
            raise KafkaStorageError(name, reason)

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
            self._publisher.publish(self.loader.image, delta, self._now_ms())
            return self._publish(delta, now)
        return self.maybe_publish_first(now)

    def maybe_publish_first(self, now: float) -> list[Output]:
        """Publish all metadata once the broker's registration is in it."""
        epoch = self.lifecycle.epoch
        if self._published or epoch == NO_EPOCH or self.loader.offset < epoch:
            return []
        image, delta = self.loader.image, everything(self.loader.image)
        self._published = True
        self._publisher.delete_strays(image, self._now_ms())
        self._publisher.publish(image, delta, self._now_ms())
        self.lifecycle.published(now)
        return self._publish(delta, now)

    def _publish(self, delta: MetadataDelta, now: float) -> list[Output]:
        image = self.loader.image
        throttled = self._throttles.publish(image, delta)
        return [
            *self.replicas.handle(MetadataPublished(image, delta), now),
            *([] if throttled is None else self.replicas.handle(throttled, now)),
            Published(image, delta),
        ]

    def _open_log(self, key: TopicIdPartition) -> StoredReplicaLog:
        partition = self._publisher.open(self.loader.image, key, self._now_ms())
        return StoredReplicaLog(self.logs, partition, self._now_ms)

    # -- requests

    def request(self, token: int, version: int, body: Message, now: float) -> list[Output]:
        """Handle a request that concerns replicas."""
        return [*self.replicas.handle(RequestReceived(token, version, body), now)]

    def replicated(self, event: Event, now: float) -> list[Output]:
        """Let the replica manager handle an event."""
        return [*self.replicas.handle(event, now)]

    def response(self, token: int, body: Message | None, now: float) -> list[Output]:
        """Handle the response to a request of the replica manager."""
        return [*self.replicas.handle(ResponseReceived(token, body), now)]

    # -- life

    def lifecycle_response(self, body: Message | None, now: float) -> list[Output]:
        """Handle the response to a registration or a heartbeat."""
        before, refused = self.lifecycle.epoch, self.lifecycle.error
        self.lifecycle.handle(body, now)
        found: list[Output] = []
        if self.lifecycle.error not in (refused, 0):
            found.append(BrokerRefused(self.lifecycle.error))
        if self.lifecycle.epoch != before:
            found += self.replicas.handle(Registered(self.lifecycle.epoch), now)
        return [*found, *self.maybe_publish_first(now)]

    def state_changes(self) -> list[Output]:
        """Report the state, if it changed."""
        if self.lifecycle.state is self._state:
            return []
        self._state = self.lifecycle.state
        return [BrokerStateChanged(self._state)]

    def next_deadline(self) -> float | None:
        """Return when to call `advance`, or when the lifecycle has something to send."""
        times: list[float | None] = [self.replicas.next_deadline(), self.lifecycle.next_deadline()]
        due_ms = self.logs.next_deadline()
        times.append(None if due_ms is None else (due_ms - self.config.epoch_ms) / 1000)
        return min((each for each in times if each is not None), default=None)

    def advance(self, now: float) -> list[Output]:
        """Do what is due."""
        due_ms = self.logs.next_deadline()
        if due_ms is not None and due_ms <= self._now_ms():
            self.logs.advance(self._now_ms())
        return [*self.replicas.advance(now)]

    def shut_down(self) -> None:
        """Close the logs: the next start needs no recovery."""
        self.logs.shutdown(self._now_ms(), self.lifecycle.epoch)
