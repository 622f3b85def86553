"""Applies the records of topics and partitions to an image.

Every change of a partition goes through `_put`, which keeps the indexes.
"""

from __future__ import annotations

from ..configs import ResourceType
from ..configs.topic_names import normalised
from ..messages.clear_elr_record import ClearElrRecord
from ..messages.partition_change_record import PartitionChangeRecord
from ..messages.partition_record import PartitionRecord
from ..messages.remove_topic_record import RemoveTopicRecord
from ..messages.topic_record import TopicRecord
from .delta import MetadataDelta
from .image import ConfigResource, MetadataImage, TopicImage
from .inapplicable import Inapplicable
from .indexes import TopicIdPartition
from .registrations import PartitionRegistration


def _topic(image: MetadataImage, topic_id: bytes) -> TopicImage:
    topic = image.topics.get(topic_id)
    if topic is None:
        raise Inapplicable(f"unknown topic id {topic_id.hex()}")
    return topic


def topic_created(image: MetadataImage, record: TopicRecord, delta: MetadataDelta) -> None:
    """Add a topic without partitions."""
    if record.name in image.topic_ids:
        raise Inapplicable(f"duplicate topic {record.name}")
    if record.topic_id in image.topics:
        raise Inapplicable(f"duplicate topic id {record.topic_id.hex()}")
    image.topics[record.topic_id] = TopicImage(record.name, record.topic_id)
    image.topic_ids[record.name] = record.topic_id
    image.colliding.setdefault(normalised(record.name), {})[record.name] = None
    delta.topics[record.topic_id] = None


def topic_removed(image: MetadataImage, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
    """Remove a topic with its partitions and configs."""
    topic = _topic(image, record.topic_id)
    for index, partition in topic.partitions.items():
        key = TopicIdPartition(topic.topic_id, index)
        image.indexes.remove(key, partition)
        delta.partitions[key] = None
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    if image.configs.pop(resource, None) is not None:
        delta.configs[resource] = None
    del image.topics[topic.topic_id], image.topic_ids[topic.name]
    names = image.colliding[normalised(topic.name)]
    del names[topic.name]
    if not names:
        del image.colliding[normalised(topic.name)]
    delta.topics.pop(topic.topic_id, None)
    delta.deleted_topics[topic.topic_id] = topic.name


def partition_created(image: MetadataImage, record: PartitionRecord, delta: MetadataDelta) -> None:
    """Add a partition, or replace it."""
    topic = _topic(image, record.topic_id)
    if not record.replicas:
        raise Inapplicable(f"{topic.name}-{record.partition_id} has no replicas")
    _put(image, topic, record.partition_id, PartitionRegistration.of(record), delta)


def partition_changed(
    image: MetadataImage, record: PartitionChangeRecord, delta: MetadataDelta
) -> None:
    """Change a partition."""
    topic = _topic(image, record.topic_id)
    old = topic.partitions.get(record.partition_id)
    if old is None:
        raise Inapplicable(f"unknown partition {topic.name}-{record.partition_id}")
    if record.replicas is not None and not record.replicas:
        raise Inapplicable(f"{topic.name}-{record.partition_id} would have no replicas")
    _put(image, topic, record.partition_id, old.merge(record), delta)


def elr_cleared(image: MetadataImage, record: ClearElrRecord, delta: MetadataDelta) -> None:
    """Clear the ELR of a topic, or of all (""), without new epochs (KIP-966)."""
    if record.topic_name and record.topic_name not in image.topic_ids:
        raise Inapplicable(f"unknown topic {record.topic_name}")
    for topic in list(image.topics.values()):
        if record.topic_name not in ("", topic.name):
            continue
        for index, partition in list(topic.partitions.items()):
            if partition.elr or partition.last_known_elr:
                cleared = partition._replace(elr=(), last_known_elr=())
                _put(image, topic, index, cleared, delta)


def _put(
    image: MetadataImage,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    delta: MetadataDelta,
) -> None:
    key = TopicIdPartition(topic.topic_id, index)
    image.indexes.update(key, topic.partitions.get(index), partition)
    topic.partitions[index] = partition
    delta.partitions[key] = None
