"""The requests that one change makes for each broker, as Kafka's ControllerBrokerRequestBatch.

The messages are made at once, of the partitions as they are then; a broker gets LeaderAndIsr
before UpdateMetadata before StopReplica, each at most once, but for StopReplica before 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.leader_and_isr_request import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ...messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from ...messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ...primitives import Message
from .registry import Key, PartitionState, Registry

LEADER_DURING_DELETE: Final = -2
EPOCH_DURING_DELETE: Final = -2
LISTENER: Final = "PLAINTEXT"
PLAINTEXT: Final = 0
STATES_FROM: Final = 3
"""The version of StopReplica with an epoch and a flag for each partition."""


@dataclass(slots=True)
class Stopped:
    """A replica to stop. leader_epoch: -2 while its topic is deleted."""

    partition: PartitionState
    leader_epoch: int
    delete: bool


@dataclass(slots=True)
class RequestBatch:
    """The requests of one change, collected by broker; `messages` makes them.

    grouped: whether one StopReplica has several partitions, as from 2.3 on.
    """

    registry: Registry
    shutting_down: set[int]
    grouped: bool
    _leaders: dict[int, dict[Key, tuple[PartitionState, bool]]] = field(default_factory=dict)
    _updated: dict[Key, tuple[PartitionState, bool]] = field(default_factory=dict)
    _update_to: set[int] = field(default_factory=set)
    _stopped: dict[int, list[Stopped]] = field(default_factory=dict)

    def leader_and_isr(
        self, node_ids: Iterable[int], partition: PartitionState, is_new: bool = False
    ) -> None:
        """Send the state of a partition to its replicas, and to all brokers as metadata."""
        for node_id in node_ids:
            self._leaders.setdefault(node_id, {})[partition.key] = partition, is_new
        self.update_metadata(self.registry.alive, [partition])

    def update_metadata(
        self,
        node_ids: Iterable[int],
        partitions: Iterable[PartitionState] = (),
        deleted: bool = False,
    ) -> None:
        """Send the live brokers and the state of these partitions."""
        self._update_to.update(node_ids)
        for partition in partitions:
            self._updated[partition.key] = partition, deleted

    def stop_replica(
        self, node_id: int, partition: PartitionState, leader_epoch: int, delete: bool
    ) -> None:
        """Stop the replica of a partition on a broker."""
        self._stopped.setdefault(node_id, []).append(Stopped(partition, leader_epoch, delete))

    def messages(self, stop_replica_version: int) -> Iterator[tuple[int, ApiKey, Message]]:
        """Make the requests: broker, API, message; broker by broker."""
        topics, brokers = self._metadata_topics(), self._live_brokers()
        concerned = self._leaders.keys() | self._update_to | self._stopped.keys()
        for node_id in sorted(concerned & self.registry.broker_epochs.keys()):
            if node_id in self._leaders:
                yield node_id, ApiKey.LEADER_AND_ISR, self._leader_and_isr(node_id)
            if node_id in self._update_to:
                update = UpdateMetadataRequest(
                    controller_id=self._controller_id,
                    controller_epoch=self.registry.controller_epoch,
                    broker_epoch=self.registry.broker_epochs[node_id],
                    topic_states=topics,
                    live_brokers=brokers,
                )
                yield node_id, ApiKey.UPDATE_METADATA, update
            for message in self._stop_replicas(node_id, stop_replica_version):
                yield node_id, ApiKey.STOP_REPLICA, message

    @property
    def _controller_id(self) -> int:
        assert self.registry.controller_id is not None
        return self.registry.controller_id

    # -- LeaderAndIsr

    def _leader_and_isr(self, node_id: int) -> LeaderAndIsrRequest:
        by_topic: dict[str, LeaderAndIsrTopicState] = {}
        leaders = set()
        for partition, is_new in self._leaders[node_id].values():
            topic = by_topic.get(partition.topic)
            if topic is None:
                topic = LeaderAndIsrTopicState(topic_name=partition.topic, partition_states=[])
                by_topic[partition.topic] = topic
            topic.partition_states.append(self._leader_state(partition, is_new))
            leaders.add(partition.leader_id)
        live = [each for each in self.registry.alive_endpoints() if each.node_id in leaders]
        return LeaderAndIsrRequest(
            controller_id=self._controller_id,
            controller_epoch=self.registry.controller_epoch,
            broker_epoch=self.registry.broker_epochs[node_id],
            topic_states=list(by_topic.values()),
            live_leaders=[
                LeaderAndIsrLiveLeader(broker_id=each.node_id, host_name=each.host, port=each.port)
                for each in live
            ],
        )

    def _leader_state(self, partition: PartitionState, is_new: bool) -> LeaderAndIsrPartitionState:
        return LeaderAndIsrPartitionState(
            partition_index=partition.index,
            controller_epoch=partition.controller_epoch,
            leader=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            partition_epoch=partition.zk_version,
            replicas=list(partition.replicas),
            is_new=is_new,
        )

    # -- UpdateMetadata

    def _metadata_topics(self) -> list[UpdateMetadataTopicState]:
        by_topic: dict[str, UpdateMetadataTopicState] = {}
        for partition, deleted in self._updated.values():
            topic = by_topic.get(partition.topic)
            if topic is None:
                topic = UpdateMetadataTopicState(topic_name=partition.topic, partition_states=[])
                by_topic[partition.topic] = topic
            topic.partition_states.append(self._metadata_state(partition, deleted))
        return list(by_topic.values())

    def _metadata_state(
        self, partition: PartitionState, deleted: bool
    ) -> UpdateMetadataPartitionState:
        online = self.registry.alive - self.shutting_down
        return UpdateMetadataPartitionState(
            partition_index=partition.index,
            controller_epoch=partition.controller_epoch,
            leader=LEADER_DURING_DELETE if deleted else partition.leader_id,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            zk_version=partition.zk_version,
            replicas=list(partition.replicas),
            offline_replicas=[node for node in partition.replicas if node not in online],
        )

    def _live_brokers(self) -> list[UpdateMetadataBroker]:
        return [
            UpdateMetadataBroker(
                id=each.node_id,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=each.port,
                        host=each.host,
                        listener=LISTENER,
                        security_protocol=PLAINTEXT,
                    )
                ],
                rack=each.rack,
            )
            for each in self.registry.alive_endpoints()
        ]

    # -- StopReplica

    def _stop_replicas(self, node_id: int, version: int) -> Iterator[StopReplicaRequest]:
        stopped = self._stopped.get(node_id, [])
        if stopped and version >= STATES_FROM:
            request = self._stop_replica(node_id)
            request.topic_states = _topic_states(stopped)
            yield request
            return
        if stopped and not self.grouped:
            yield self._stop_replica(node_id)  # of the replicas that need no response: none
        for delete in (False, True):
            chosen = [each for each in stopped if each.delete is delete]
            groups = [chosen] if self.grouped else [[each] for each in chosen]
            for group in filter(None, groups):
                request = self._stop_replica(node_id)
                request.delete_partitions = delete
                request.topics = _topics_v1(group)
                yield request

    def _stop_replica(self, node_id: int) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self._controller_id,
            controller_epoch=self.registry.controller_epoch,
            broker_epoch=self.registry.broker_epochs[node_id],
        )


def _topic_states(stopped: Iterable[Stopped]) -> list[StopReplicaTopicState]:
    by_topic: dict[str, StopReplicaTopicState] = {}
    for each in stopped:
        name = each.partition.topic
        topic = by_topic.setdefault(
            name, StopReplicaTopicState(topic_name=name, partition_states=[])
        )
        topic.partition_states.append(
            StopReplicaPartitionState(
                partition_index=each.partition.index,
                leader_epoch=each.leader_epoch,
                delete_partition=each.delete,
            )
        )
    return list(by_topic.values())


def _topics_v1(stopped: Iterable[Stopped]) -> list[StopReplicaTopicV1]:
    by_topic: dict[str, StopReplicaTopicV1] = {}
    for each in stopped:
        name = each.partition.topic
        topic = by_topic.setdefault(name, StopReplicaTopicV1(name=name, partition_indexes=[]))
        topic.partition_indexes.append(each.partition.index)
    return list(by_topic.values())
