"""Keeps cluster metadata: brokers, topics, partition leaders.

An older leader epoch never replaces a newer one (KIP-320), unless the topic was recreated
under the same name (KIP-516); a requested topic that a response lacks is removed.

    MetadataResponse ─▶ update        ─▶ names of the topics that changed
    KIP-951 leaders  ─▶ update_leader ─┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...primitives.structure import ZERO_UUID
from ...protocol.error_code import ErrorCode
from ..cluster import Broker, FinalizedFeatures, Partition, Topic
from ..requests import UpdateLeader

RELIABLE_EPOCHS_FROM: Final = 9
"""Older versions may report leader epochs that are not reliable (KAFKA-9261)."""
TOPIC_IDS_FROM: Final = 10
NO_LEADER: Final = -1


def with_cause(failure: str, cause: str) -> str:
    """Append the likely cause to an error message."""
    return f"{failure} ({cause})" if cause else failure


class Metadata:
    """The last known cluster metadata; implements `cluster.ClusterView`."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.controller_id = -1
        self.cluster_id: str | None = None
        self.finalized_features: Mapping[str, int] = {}
        self.last_error = ""
        self._features_epoch = -1
        self._names: dict[bytes, str] = {}

    def partition(self, topic: str, index: int) -> Partition | None:
        """Return a partition, or None if it is unknown."""
        topic_metadata = self.topics.get(topic)
        return None if topic_metadata is None else topic_metadata.partitions.get(index)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return a topic's name by its id."""
        return self._names.get(topic_id)

    def update(
        self, response: MetadataResponse, version: int, requested: frozenset[str] | None
    ) -> frozenset[str]:
        """Apply a response to a request for those topics (None: all); return the topics changed."""
        if response.brokers:
            self.brokers = {
                row.node_id: Broker(row.node_id, row.host, row.port, row.rack)
                for row in response.brokers
            }
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id
        reported = {
            row.name: self._topic(row, version) for row in response.topics if row.name is not None
        }
        removed = {
            name for name in self.topics if requested is None or name in requested
        } - reported.keys()
        changed = {
            name for name, topic in reported.items() if self.topics.get(name) != topic
        } | removed
        self.topics.update(reported)
        for name in removed:
            del self.topics[name]
        self._names = {
            topic.topic_id: name
            for name, topic in self.topics.items()
            if topic.topic_id != ZERO_UUID
        }
        return frozenset(changed)

    def update_leader(self, event: UpdateLeader) -> bool:
        """Apply a leader reported by a broker; return whether it is newer."""
        current = self.partition(event.topic, event.partition)
        if current is None or event.leader_epoch <= current.leader_epoch:
            return False
        for broker in event.endpoints:
            self.brokers[broker.node_id] = broker
        if event.leader not in self.brokers:
            return False
        topic = self.topics[event.topic]
        led = replace(current, leader=event.leader, leader_epoch=event.leader_epoch, error=0)
        self.topics[event.topic] = replace(
            topic, partitions={**topic.partitions, event.partition: led}
        )
        return True

    def update_features(self, features: FinalizedFeatures) -> None:
        """Apply the finalized features that a broker reported, unless newer ones are known."""
        if features.epoch >= self._features_epoch:
            self._features_epoch, self.finalized_features = features

    def forget(self, keep: frozenset[str]) -> None:
        """Drop all topics but these."""
        self.topics = {name: topic for name, topic in self.topics.items() if name in keep}

    def _topic(self, row: MetadataResponseTopic, version: int) -> Topic:
        name = row.name or ""
        before = self.topics.get(name)
        topic_id = row.topic_id if version >= TOPIC_IDS_FROM else ZERO_UUID
        same = before is not None and ZERO_UUID in (before.topic_id, topic_id)
        same = same or (before is not None and before.topic_id == topic_id)
        old: Mapping[int, Partition] = before.partitions if before is not None and same else {}
        if row.error_code == ErrorCode.LEADER_NOT_AVAILABLE:  # transient: keep the partitions
            return Topic(name, topic_id, row.is_internal, old, row.error_code)
        partitions = {
            received.index: newer(received, old.get(received.index))
            for received in (partition(name, each, version) for each in row.partitions)
        }
        return Topic(name, topic_id, row.is_internal, partitions, row.error_code)


def partition(topic: str, row: MetadataResponsePartition, version: int) -> Partition:
    """Convert a partition of a response."""
    return Partition(
        topic,
        row.partition_index,
        NO_LEADER if row.error_code == ErrorCode.LEADER_NOT_AVAILABLE else row.leader_id,
        row.leader_epoch if version >= RELIABLE_EPOCHS_FROM else -1,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
        row.error_code,
    )


def newer(reported: Partition, known: Partition | None) -> Partition:
    """Choose by leader epoch; without one, the latest report wins."""
    if known is None or reported.leader_epoch < 0 or reported.leader_epoch >= known.leader_epoch:
        return reported
    return known
