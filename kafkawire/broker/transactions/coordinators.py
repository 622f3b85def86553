"""The transaction coordinators of a node: one for each partition that it leads.

A coordinator is the one of a leader epoch, as those of groups. What it returns goes to those
who wait for it, and its markers to the leaders of their partitions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from ...configs.features import TRANSACTIONS
from ...metadata import MetadataDelta, TopicIdPartition
from ...protocol import ErrorCode
from ...transactions import (
    NONE,
    Effect,
    ProducerIdNeeded,
    Request,
    Result,
    TransactionConfig,
    TransactionCoordinator,
    WriteMarkers,
)
from ..deadlines import Deadlines
from ..groups.coordinator_log import CoordinatorLog
from ..groups.coordinators import partition_for
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..topics import NO_LEADER, TRANSACTIONS_TOPIC
from .markers import NodeMarkers
from .producer_ids import ProducerIds

E = ErrorCode
Then = Callable[[Result, float], None]


class TransactionCoordinators:
    """Loads and unloads the coordinators of a node, and hands requests to them."""

    def __init__(
        self,
        node_id: int,
        metadata: MetadataCache,
        machines: Machines,
        config: TransactionConfig,
        producer_ids: ProducerIds,
        markers: NodeMarkers,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._machines = machines
        self._config = config
        self._producer_ids = producer_ids
        self._markers = markers
        self.markers = markers.queue
        """They have deadlines of their own."""
        self._log = CoordinatorLog(metadata, machines, TRANSACTIONS_TOPIC)
        self.work = (*self.markers.work, self._log.failed)
        """All empty if `run` has nothing to do."""
        self._loaded: dict[int, TransactionCoordinator] = {}
        self._waiting: dict[int, Then] = {}
        self._count = 0
        self.deadlines: Deadlines[int] = Deadlines()
        """The partitions whose coordinators have something to do."""

    @property
    def version(self) -> int:
        """transaction.version of the cluster."""
        return self._metadata.image.features.get(TRANSACTIONS, 0)

    # -- where coordinators are

    def leader_of(self, transactional_id: str) -> tuple[int, int]:
        """Return the partition of a transactional id and its leader, NO_LEADER for none."""
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return 0, NO_LEADER
        index = partition_for(transactional_id, len(topic.partitions))
        return index, topic.partitions[index].leader_id

    def find(self, transactional_id: str) -> TransactionCoordinator | ErrorCode:
        """Return the coordinator of a transactional id, if it is here."""
        if not transactional_id:
            return E.INVALID_REQUEST
        index, leader = self.leader_of(transactional_id)
        if leader != self._node_id:
            return E.COORDINATOR_NOT_AVAILABLE if leader == NO_LEADER else E.NOT_COORDINATOR
        return self._loaded.get(index, E.COORDINATOR_LOAD_IN_PROGRESS)

    def all(self) -> Iterable[TransactionCoordinator]:
        """Return the coordinators that are here."""
        return self._loaded.values()

    # -- requests

    def submit(self, make: Callable[[int], Request], then: Then, now: float) -> None:
        """Hand a request to its coordinator; `then` is called with its result.

        make: makes the request from its `reply_to`.
        """
        self._count += 1
        request = make(self._count)
        self._waiting[request.reply_to] = then
        self._handle(request, now)

    def _handle(self, request: Request, now: float) -> None:
        coordinator = self.find(request.transactional_id)
        if isinstance(coordinator, ErrorCode):
            self._result(Result(request.reply_to, coordinator), now)
        else:
            self._changed(coordinator, coordinator.handle(request, now), now)

    def _changed(
        self, coordinator: TransactionCoordinator, effects: Iterable[Effect], now: float
    ) -> None:
        """Carry out the effects of a coordinator."""
        self.deadlines.set(coordinator.index, coordinator.next_deadline())
        self._carry_out(effects, now)

    def _carry_out(self, effects: Iterable[Effect], now: float) -> None:
        for effect in effects:
            match effect:
                case Result():
                    self._result(effect, now)
                case WriteMarkers():
                    self.markers.add(effect)
                case ProducerIdNeeded():
                    self._needs_producer_id(effect, now)

    def _result(self, result: Result, now: float) -> None:
        then = self._waiting.pop(result.reply_to, None)
        if then is not None:
            then(result, now)

    def _needs_producer_id(self, effect: ProducerIdNeeded, now: float) -> None:
        request = effect.request

        def then(producer_id: int | None, now: float) -> None:
            if producer_id is None:
                self._result(Result(request.reply_to, E.COORDINATOR_LOAD_IN_PROGRESS), now)
            else:
                self._handle(request._replace(new_producer_id=producer_id), now)

        assert request.new_producer_id == NONE
        self._producer_ids.take(then, now)

    # -- metadata

    def published(self, delta: MetadataDelta, now: float) -> None:
        """Follow the leaders of the partitions."""
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            for index in list(self._loaded):
                self._unload(index, E.NOT_COORDINATOR, now)
            return
        for key in delta.partitions:
            if key.topic_id == topic.topic_id:
                self._follow(key, now)

    def _follow(self, key: TopicIdPartition, now: float) -> None:
        index, replica = key.partition, self._machines.replica(key)
        loaded = self._loaded.get(index)
        if replica is None or not replica.is_leader:
            self._unload(index, E.NOT_COORDINATOR, now)
        elif loaded is None or loaded.epoch != replica.leader_epoch:
            self._unload(index, E.NOT_COORDINATOR, now)
            self._load(index, replica.leader_epoch, now)

    def _load(self, index: int, epoch: int, now: float) -> None:
        coordinator = TransactionCoordinator(index, epoch, self._log, self._config, now)
        self._loaded[index] = coordinator
        self._changed(coordinator, coordinator.load(), now)

    def _unload(self, index: int, error: ErrorCode, now: float) -> None:
        loaded = self._loaded.pop(index, None)
        if loaded is not None:
            self.markers.drop(index)
            self.deadlines.cancel(index)
            self._carry_out(loaded.unload(error), now)

    # -- the machines

    def committed(self, key: TopicIdPartition, offset: int, now: float) -> None:
        """Go on with what waited for the high watermark of a partition."""
        loaded = self._loaded.get(key.partition)
        if loaded is not None and key == self._log.key(key.partition):
            self._changed(loaded, loaded.committed(offset), now)

    def run(self, now: float) -> None:
        """Send markers, complete transactions, and load the partitions whose append has failed."""
        if not any(self.work):
            return
        self._markers.send(now)
        done = deque(self.markers.take_done())
        while done:
            marker = done.popleft()
            loaded = self._loaded.get(marker.coordinator)
            if loaded is not None:
                self._changed(loaded, loaded.markers_written(marker, now), now)
            if not done:
                self._markers.send(now)
                done.extend(self.markers.take_done())
        while self._log.failed:
            index = self._log.failed.pop()
            loaded = self._loaded.get(index)
            if loaded is not None:
                self._unload(index, E.COORDINATOR_NOT_AVAILABLE, now)
                self._load(index, loaded.epoch, now)

    def advance(self, now: float) -> None:
        """Do what is due."""
        version = self.version
        while (index := self.deadlines.pop_due(now)) is not None:
            loaded = self._loaded[index]
            self._changed(loaded, loaded.advance(now, version), now)
        self.run(now)
