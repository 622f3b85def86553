"""What is known of the cluster: brokers, topics, who leads which partition.

Law: news of an older leader epoch never replaces newer (KIP-320), unless the topic is another one
by the same name (KIP-516); what a refresh was asked about and did not mention is gone.

    MetadataResponse ─▶ update ─▶ names of the topics that changed
    KIP-951 hints    ─▶ learn  ─┘
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
from ..requests import UpdateLeader
from .cluster import Broker, Partition, Topic

RELIABLE_EPOCHS_FROM: Final = 9
"""Brokers that answer older versions may tell leader epochs that were never true (KAFKA-9261)."""
TOPIC_IDS_FROM: Final = 10
NO_LEADER: Final = -1


def told(failure: str, trouble: str) -> str:
    """Say what failed, and what may be why."""
    return f"{failure} ({trouble})" if trouble else failure


class Metadata:
    """The cluster as it was last heard of; implements `requests.ClusterView`."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.controller_id = -1
        self.cluster_id: str | None = None
        self.trouble = ""
        self._names: dict[bytes, str] = {}

    def partition(self, topic: str, index: int) -> Partition | None:
        """Find a partition; None where it is not known."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Find a topic's name by its id."""
        return self._names.get(topic_id)

    def update(
        self, response: MetadataResponse, version: int, asked: frozenset[str] | None
    ) -> frozenset[str]:
        """Take a response to a request about those topics (None: all); name the topics changed."""
        if response.brokers:
            self.brokers = {
                row.node_id: Broker(row.node_id, row.host, row.port, row.rack)
                for row in response.brokers
            }
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id
        told = {
            row.name: self._topic(row, version) for row in response.topics if row.name is not None
        }
        gone = {name for name in self.topics if asked is None or name in asked} - told.keys()
        changed = {name for name, topic in told.items() if self.topics.get(name) != topic} | gone
        self.topics.update(told)
        for name in gone:
            del self.topics[name]
        self._names = {
            topic.topic_id: name
            for name, topic in self.topics.items()
            if topic.topic_id != ZERO_UUID
        }
        return frozenset(changed)

    def learn(self, news: UpdateLeader) -> bool:
        """Take a broker's word on who leads a partition; False where it is nothing new."""
        known = self.partition(news.topic, news.partition)
        if known is None or news.leader_epoch <= known.leader_epoch:
            return False
        for broker in news.endpoints:
            self.brokers[broker.node_id] = broker
        if news.leader not in self.brokers:
            return False
        topic = self.topics[news.topic]
        led = replace(known, leader=news.leader, leader_epoch=news.leader_epoch, error=0)
        self.topics[news.topic] = replace(
            topic, partitions={**topic.partitions, news.partition: led}
        )
        return True

    def forget(self, keep: frozenset[str]) -> None:
        """Let go of topics that nobody needs."""
        self.topics = {name: topic for name, topic in self.topics.items() if name in keep}

    def _topic(self, row: MetadataResponseTopic, version: int) -> Topic:
        name = row.name or ""
        known = self.topics.get(name)
        topic_id = row.topic_id if version >= TOPIC_IDS_FROM else ZERO_UUID
        same = known is not None and ZERO_UUID in (known.topic_id, topic_id)
        same = same or (known is not None and known.topic_id == topic_id)
        old: Mapping[int, Partition] = known.partitions if known is not None and same else {}
        if row.error_code == ErrorCode.LEADER_NOT_AVAILABLE:  # for a moment: the rest stands
            return Topic(name, topic_id, row.is_internal, old, row.error_code)
        partitions = {
            made.index: newer(made, old.get(made.index))
            for made in (partition(name, each, version) for each in row.partitions)
        }
        return Topic(name, topic_id, row.is_internal, partitions, row.error_code)


def partition(topic: str, row: MetadataResponsePartition, version: int) -> Partition:
    """Take a partition as a broker tells it."""
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


def newer(told: Partition, known: Partition | None) -> Partition:
    """Choose by leader epoch; without one, the last word stands."""
    if known is None or told.leader_epoch < 0 or told.leader_epoch >= known.leader_epoch:
        return told
    return known
