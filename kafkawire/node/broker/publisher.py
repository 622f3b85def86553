"""Applies new metadata to the logs of a broker, as Kafka's BrokerMetadataPublisher.

A log belongs to a topic id: that of a deleted topic is deleted before a log of the same name
is created. A replica that is no longer assigned here has no log here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from ...configs import TOPIC_CONFIGS, ResourceType
from ...metadata import MetadataDelta, MetadataImage, TopicIdPartition, topic_value
from ...metadata.registrations import is_reserved
from ...storage import LogConfig, LogManager, Stray, TopicPartition

LOG_CONFIGS: Final = tuple(
    name
    for name in (field.name.replace("_", ".") for field in fields(LogConfig))
    if name in TOPIC_CONFIGS
)
"""The configs of a topic that concern its log."""
SEGMENT_BYTES: Final = "segment.bytes"
INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
"""For tests: instead of `segment.bytes`, and may be less than that."""


class LogPublisher:
    """Keeps the logs of a broker as the metadata says."""

    def __init__(self, logs: LogManager, broker_id: int, static: Mapping[str, str]) -> None:
        self._logs = logs
        self._broker_id = broker_id
        self._static = static

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Take over configurations; let checkpoints forget the logs of deleted topics, at once."""
        topics = self._configured(image, delta)
        self._logs.update_configs({each: self._config(image, each) for each in topics})
        deleted = set(delta.deleted_topics.values())
        if deleted:
            logs = [each for each in self._logs.partitions if each.topic in deleted]
            self._logs.retire(each for each in logs if self._is_stray(image, each))

    def delete_strays(
        self,
        image: MetadataImage,
        keys: Iterable[TopicIdPartition],
        deleted: Mapping[bytes, str],
        now_ms: int,
    ) -> None:
        """Delete the logs of partitions that are not replicas here any more.

        deleted: id -> name of topics that are not in the image.
        """
        strays: list[TopicPartition] = []
        for key in keys:
            topic = image.topics.get(key.topic_id)
            name = deleted.get(key.topic_id) if topic is None else topic.name
            if name is not None:
                partition = TopicPartition(name, key.partition)
                if partition in self._logs and self._is_stray(image, partition):
                    strays.append(partition)
        if strays:
            self._logs.delete(dict.fromkeys(strays), now_ms)

    def set_strays_aside(self, image: MetadataImage) -> list[Stray]:
        """Rename the logs of topics that were deleted, or moved, while this broker was down.

        They are kept, as Kafka keeps them: the metadata may have been damaged.
        """
        here = dict.fromkeys((*self._logs.partitions, *self._logs.damaged))
        return self._logs.set_aside(each for each in here if self._is_stray(image, each))

    def open(self, image: MetadataImage, key: TopicIdPartition, now_ms: int) -> TopicPartition:
        """Return the log of a replica, created if it is new.

        Raises KafkaStorageError if its directory, by the metadata, is not online.
        """
        topic = image.topics[key.topic_id]
        partition = TopicPartition(topic.name, key.partition)
        directory = topic.partitions[key.partition].directory(self._broker_id)
        is_new = is_reserved(directory) or directory in self._logs.directory_ids
        self._logs.get_or_create(partition, now_ms, key.topic_id, is_new=is_new)
        return partition

    def _configured(self, image: MetadataImage, delta: MetadataDelta) -> Iterable[str]:
        """Name the topics whose configuration may differ."""
        brokers = any(each.type == ResourceType.BROKER for each in delta.configs)
        if brokers:
            return [topic.name for topic in image.topics.values()]
        changed = [each.name for each in delta.configs if each.type == ResourceType.TOPIC]
        created = [image.topics[each].name for each in delta.topics if each in image.topics]
        return dict.fromkeys(changed + created)

    def _config(self, image: MetadataImage, topic: str) -> LogConfig | None:
        if topic not in image.topic_ids:
            return None
        values = {
            name: topic_value(image, topic, name, self._static, str(self._broker_id))
            for name in LOG_CONFIGS
        }
        internal = image.config(ResourceType.TOPIC, topic).get(INTERNAL_SEGMENT_BYTES)
        if internal is not None:
            values[SEGMENT_BYTES] = internal
        return LogConfig.of(values)

    def _is_stray(self, image: MetadataImage, partition: TopicPartition) -> bool:
        topic = image.topic(partition.topic)
        registration = None if topic is None else topic.partitions.get(partition.partition)
        topic_id = None if topic is None else topic.topic_id
        assigned = registration is not None and self._broker_id in registration.replicas
        return not assigned or self._logs.topic_id(partition) not in (None, topic_id)
