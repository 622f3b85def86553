"""The controller: changes topics, configuration and leaders, and writes the metadata log.

Law: every change of the cluster's metadata is persisted as in Kafka: typed records of
`__cluster_metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...configs import ResourceType, source_of
from ...configs.topic_names import topic_name_error
from ...messages.config_record import ConfigRecord
from ...messages.partition_change_record import PartitionChangeRecord
from ...messages.partition_record import PartitionRecord
from ...messages.producer_ids_record import ProducerIdsRecord
from ...messages.remove_topic_record import RemoveTopicRecord
from ...messages.topic_record import TopicRecord
from ...primitives import Message
from ...protocol import ErrorCode
from ...protocol.log_records import encode_log_message
from ...records import BatchBuilder
from ..context import Context
from ..effects import Persist
from ..groups.coordinators import Coordinators
from ..metadata import ClusterMetadata
from ..replication.appending import Appender
from ..request import Request
from ..topics import INTERNAL, OFFSETS_TOPIC, Partition, Topic
from .producer_ids import ProducerIds

if TYPE_CHECKING:
    from ...messages.init_producer_id_request import InitProducerIdRequest
    from ...messages.init_producer_id_response import InitProducerIdResponse
    from ..zookeeper.controller import ZooKeeperController

METADATA_LOG: Final = "__cluster_metadata"


class Controller:
    """Changes the metadata of a cluster.

    producer_ids: the producer ids that it assigns. zookeeper: sends changes to the brokers, in a
    cluster with ZooKeeper.
    """

    def __init__(
        self,
        context: Context,
        metadata: ClusterMetadata,
        appender: Appender,
        groups: Coordinators,
        zookeeper: ZooKeeperController | None = None,
    ) -> None:
        self.context = context
        self.metadata = metadata
        self.topics = metadata.topics
        self.appender = appender
        self.groups = groups
        self.zookeeper = zookeeper
        self.producer_ids = ProducerIds(self._reserve_producer_ids)

    def find_or_create_topic(self, name: str, now: float) -> Topic | None:
        """Find a topic; create it if `auto.create.topics.enable` allows."""
        topic = self.topics.get(name)
        settings = self.context.settings
        if topic is not None or topic_name_error(name) is not None:
            return topic
        if name in INTERNAL or not settings.flag("auto.create.topics.enable"):
            return None
        if self.topics.colliding(name) is not None:
            return None
        count = settings.number("num.partitions")
        factor = min(settings.number("default.replication.factor"), len(self.topics.node_ids))
        if self.partitions_error(count) is not None:
            return None
        return self.create_topic(name, self.topics.spread(count, factor), {}, now)

    def partitions_error(self, partitions: int) -> str | None:
        """Return why one request may not create that many partitions, None if it may."""
        bounds = self.context.bounds
        if partitions > bounds.partitions_per_request:
            return "Excessively large number of partitions per request."
        if self.topics.partition_count + partitions > bounds.partitions:
            return f"The cluster would have more than {bounds.partitions} partitions."
        return None

    def ensure_transactions_topic(self, now: float) -> Topic:
        """Return the topic whose leaders assign ids to transactional ids."""
        return self.ensure_offsets_topic(now)

    def is_creating(self, _name: str) -> bool:
        """Return False: topics are created at once."""
        return False

    def ensure_offsets_topic(self, now: float) -> Topic:
        """Find the `__consumer_offsets` topic, or create it."""
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is not None:
            return topic
        settings = self.context.settings
        count = settings.number("offsets.topic.num.partitions")
        count = min(count, self.context.bounds.partitions_per_request)
        configured = settings.number("offsets.topic.replication.factor")
        factor = min(configured, len(self.topics.node_ids))
        configs = {"cleanup.policy": "compact", "compression.type": "producer"}
        return self.create_topic(OFFSETS_TOPIC, self.topics.spread(count, factor), configs, now)

    def create_topic(
        self, name: str, assignments: Sequence[Sequence[int]], configs: dict[str, str], now: float
    ) -> Topic:
        """Create a topic. assignments: the replicas of each partition."""
        topic = self.topics.create(name, assignments, configs)
        records: list[Message] = [TopicRecord(name=name, topic_id=topic.topic_id)]
        records += [_partition_record(topic, each) for each in topic.partitions]
        records += [_config_record(ResourceType.TOPIC, name, *each) for each in configs.items()]
        self._persist(records, now)
        if self.zookeeper is not None:
            self.zookeeper.created(topic.partitions, now)
        return topic

    def create_partitions(
        self, topic: Topic, assignments: Sequence[Sequence[int]], now: float
    ) -> None:
        """Add partitions to a topic."""
        existing = len(topic.partitions)
        self.topics.extend(topic, assignments)
        added = topic.partitions[existing:]
        self._persist([_partition_record(topic, each) for each in added], now)
        if self.zookeeper is not None:
            self.zookeeper.created(added, now)

    def delete_topics(self, topics: Sequence[Topic], now: float) -> None:
        """Delete topics with their records and committed offsets; delayed fetches complete."""
        for topic in topics:
            self.topics.delete(topic)
            self.appender.topic_deleted(topic.name)
        self._persist([RemoveTopicRecord(topic_id=topic.topic_id) for topic in topics], now)
        self.groups.topics_deleted({topic.name for topic in topics}, now)
        for topic in topics:
            for partition in topic.partitions:
                self.appender.complete_fetches(partition, now)
        if self.zookeeper is not None:
            self.zookeeper.deleted(topics, now)

    def alter_topic_configs(self, topic: Topic, configs: dict[str, str], now: float) -> None:
        """Replace a topic's configs; the keys not given return to their defaults."""
        removed = [key for key in topic.configs if key not in configs]
        changed = {key: value for key, value in configs.items() if topic.configs.get(key) != value}
        topic.configs = dict(configs)
        updates = dict.fromkeys(removed) | changed
        records = [
            _config_record(ResourceType.TOPIC, topic.name, *each) for each in updates.items()
        ]
        self._persist(records, now)

    def alter_broker_configs(
        self, changed: Mapping[str, str | None], now: float, resource: str = ""
    ) -> None:
        """Change broker configs; None restores the default.

        resource: the broker they are set for, "" for all. All brokers here share their settings,
        so it only determines the config source.
        """
        for name, value in changed.items():
            self.context.settings.alter(name, value, source_of(resource))
        records = [_config_record(ResourceType.BROKER, resource, *each) for each in changed.items()]
        self._persist(records, now)

    def persist_leader(self, partition: Partition, now: float) -> None:
        """Persist a change of leader."""
        topic = self.topics.get(partition.topic)
        if topic is not None:
            change = PartitionChangeRecord(
                partition_id=partition.index,
                topic_id=topic.topic_id,
                isr=partition.isr,
                leader=partition.leader_id,
                replicas=partition.replicas,
            )
            self._persist([change], now)

    def initialise(
        self, _request: Request, body: InitProducerIdRequest, now: float
    ) -> InitProducerIdResponse:
        """Assign a producer id, but none for transactions, whose other APIs are not served.

        The error is one that clients do not retry.
        """
        from ...messages.init_producer_id_response import InitProducerIdResponse

        if body.transactional_id is not None:
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return InitProducerIdResponse(error_code=refused, producer_id=-1, producer_epoch=-1)
        return InitProducerIdResponse(producer_id=self.producer_ids.new(now), producer_epoch=0)

    def _reserve_producer_ids(self, next_producer_id: int, now: float) -> None:
        """Persist that producer ids below this one may have been assigned."""
        record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_producer_id)
        self._persist([record], now)

    def _persist(self, records: Sequence[Message], now: float) -> None:
        if not records:
            return
        builder = BatchBuilder(base_offset=self.metadata.offset, partition_leader_epoch=0)
        for record in records:
            builder.append(None, encode_log_message(record, 0), self.context.wall_ms(now))
        self.metadata.offset = builder.last_offset + 1
        self.context.emit(Persist(METADATA_LOG, 0, builder.build()))


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
