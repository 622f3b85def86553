"""Making, growing and deleting topics; and keeping what the cluster is made of.

Law: what changes the cluster's shape is kept as Kafka keeps it: typed records of
`__cluster_metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..messages.config_record import ConfigRecord
from ..messages.partition_change_record import PartitionChangeRecord
from ..messages.partition_record import PartitionRecord
from ..messages.producer_ids_record import ProducerIdsRecord
from ..messages.remove_topic_record import RemoveTopicRecord
from ..messages.topic_record import TopicRecord
from ..primitives import Message
from ..protocol.log_records import encode_log_message
from ..records import BatchBuilder
from .altering import source_of
from .effects import Persist
from .topics import INTERNAL, OFFSETS_TOPIC, Partition, Topic, topic_name_error

if TYPE_CHECKING:
    from .cluster import Cluster

METADATA_LOG: Final = "__cluster_metadata"
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4


class Creation:
    """Changes the topics of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._offset = 0

    def ensure(self, name: str, now: float) -> Topic | None:
        """Find a topic, or make it if configuration lets clients make topics by asking."""
        topic = self.cluster.topics.get(name)
        settings = self.cluster.settings
        if topic is not None or topic_name_error(name) is not None:
            return topic
        if name in INTERNAL or not settings.flag("auto.create.topics.enable"):
            return None
        count = settings.number("num.partitions")
        factor = min(
            settings.number("default.replication.factor"), len(self.cluster.topics.node_ids)
        )
        if self.excess(count) is not None:
            return None
        return self.create(name, self.cluster.topics.spread(count, factor), {}, now)

    def excess(self, partitions: int) -> str | None:
        """Return why one request may not create that many partitions, None if it may."""
        bounds = self.cluster.bounds
        if partitions > bounds.partitions_per_request:
            return "Excessively large number of partitions per request."
        if self.cluster.topics.partition_count + partitions > bounds.partitions:
            return f"The cluster would have more than {bounds.partitions} partitions."
        return None

    def ensure_offsets_topic(self, now: float) -> Topic:
        """Find the topic that keeps committed offsets, or make it."""
        topic = self.cluster.topics.get(OFFSETS_TOPIC)
        if topic is not None:
            return topic
        settings = self.cluster.settings
        count = settings.number("offsets.topic.num.partitions")
        count = min(count, self.cluster.bounds.partitions_per_request)
        wanted = settings.number("offsets.topic.replication.factor")
        factor = min(wanted, len(self.cluster.topics.node_ids))
        configs = {"cleanup.policy": "compact", "compression.type": "producer"}
        return self.create(OFFSETS_TOPIC, self.cluster.topics.spread(count, factor), configs, now)

    def create(
        self, name: str, assignments: Sequence[Sequence[int]], configs: dict[str, str], now: float
    ) -> Topic:
        """Make a topic with those replicas, a list a partition."""
        topic = self.cluster.topics.create(name, assignments, configs)
        records: list[Message] = [TopicRecord(name=name, topic_id=topic.topic_id)]
        records += [_partition_record(topic, each) for each in topic.partitions]
        records += [_config_record(TOPIC_RESOURCE, name, *each) for each in configs.items()]
        self._persist(records, now)
        return topic

    def extend(self, topic: Topic, assignments: Sequence[Sequence[int]], now: float) -> None:
        """Add partitions to a topic."""
        existing = len(topic.partitions)
        self.cluster.topics.extend(topic, assignments)
        self._persist([_partition_record(topic, each) for each in topic.partitions[existing:]], now)

    def delete(self, topics: Sequence[Topic], now: float) -> None:
        """Delete topics, their records and what was committed for them; fetches of them end."""
        for topic in topics:
            self.cluster.topics.delete(topic)
            self.cluster.appender.topic_deleted(topic.name)
        self._persist([RemoveTopicRecord(topic_id=topic.topic_id) for topic in topics], now)
        self.cluster.groups.topics_deleted({topic.name for topic in topics}, now)
        for topic in topics:
            for partition in topic.partitions:
                self.cluster.appended(partition, now)

    def configure(self, topic: Topic, configs: dict[str, str], now: float) -> None:
        """Give a topic other configs; those that are not named go back to their defaults."""
        removed = [key for key in topic.configs if key not in configs]
        changed = {key: value for key, value in configs.items() if topic.configs.get(key) != value}
        topic.configs = dict(configs)
        updates = dict.fromkeys(removed) | changed
        records = [_config_record(TOPIC_RESOURCE, topic.name, *each) for each in updates.items()]
        self._persist(records, now)

    def configure_brokers(
        self, changed: Mapping[str, str | None], now: float, resource: str = ""
    ) -> None:
        """Give brokers other settings; None goes back to the default.

        resource: the broker they were set for, "" for all. All brokers here share their settings;
        it only says where a value is from.
        """
        for name, value in changed.items():
            self.cluster.settings.alter(name, value, source_of(resource))
        records = [_config_record(BROKER_RESOURCE, resource, *each) for each in changed.items()]
        self._persist(records, now)

    def persist_leader(self, partition: Partition, now: float) -> None:
        """Keep that a partition has another leader."""
        topic = self.cluster.topics.get(partition.topic)
        if topic is not None:
            change = PartitionChangeRecord(
                partition_id=partition.index,
                topic_id=topic.topic_id,
                isr=partition.isr,
                leader=partition.leader_id,
                replicas=partition.replicas,
            )
            self._persist([change], now)

    def reserve_producer_ids(self, next_producer_id: int, now: float) -> None:
        """Keep that producer ids before this one may have been given."""
        record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_producer_id)
        self._persist([record], now)

    @property
    def offset(self) -> int:
        """How much of the metadata log existing is."""
        return self._offset

    def resume_from(self, offset: int) -> None:
        """Write what is kept next from this offset on."""
        self._offset = offset

    def _persist(self, records: Sequence[Message], now: float) -> None:
        if not records:
            return
        builder = BatchBuilder(base_offset=self._offset, partition_leader_epoch=0)
        for record in records:
            builder.append(None, encode_log_message(record, 0), self.cluster.wall_ms(now))
        self._offset = builder.last_offset + 1
        self.cluster.emit(Persist(METADATA_LOG, 0, builder.build()))


def _partition_record(topic: Topic, partition: Partition) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition.index,
        topic_id=topic.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        partition_epoch=0,
    )


def _config_record(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
