"""What a series of records changed, for those that observe the metadata.

A delta names everything that may differ between two images, once; what became of it is in
the newer image. The partitions of a deleted topic are before those of a new one of its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .image import ConfigResource, MetadataImage, QuotaEntity
from .indexes import TopicIdPartition


@dataclass(slots=True)
class MetadataDelta:
    """The names of what changed; a dict of names is a set in order of first change.

    deleted_topics: id -> name. offset: of the last record, -1 for none.
    """

    offset: int = -1
    topics: dict[bytes, None] = field(default_factory=dict)
    deleted_topics: dict[bytes, str] = field(default_factory=dict)
    partitions: dict[TopicIdPartition, None] = field(default_factory=dict)
    brokers: dict[int, None] = field(default_factory=dict)
    controllers: dict[int, None] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    quotas: dict[QuotaEntity, None] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], None] = field(default_factory=dict)
    acls: dict[bytes, None] = field(default_factory=dict)
    delegation_tokens: dict[str, None] = field(default_factory=dict)
    producer_ids: bool = False

    def add(self, later: MetadataDelta) -> None:
        """Add what later records changed."""
        self.offset = later.offset
        self.topics |= later.topics
        for topic_id in later.deleted_topics:
            self.topics.pop(topic_id, None)
        self.deleted_topics |= later.deleted_topics
        self.partitions |= later.partitions
        self.brokers |= later.brokers
        self.controllers |= later.controllers
        self.configs |= later.configs
        self.features |= later.features
        self.quotas |= later.quotas
        self.scram_credentials |= later.scram_credentials
        self.acls |= later.acls
        self.delegation_tokens |= later.delegation_tokens
        self.producer_ids = self.producer_ids or later.producer_ids


def slices(delta: MetadataDelta, partitions: int) -> Iterator[MetadataDelta]:
    """Divide a delta into some of at most so many partitions; the first has all the rest."""
    keys = list(delta.partitions)
    if len(keys) <= partitions:
        yield delta
        return
    yield replace(delta, partitions=dict.fromkeys(keys[:partitions]))
    for start in range(partitions, len(keys), partitions):
        yield MetadataDelta(
            delta.offset, partitions=dict.fromkeys(keys[start : start + partitions])
        )


def everything(image: MetadataImage) -> MetadataDelta:
    """Return a delta that names all that an image holds, for who observes it from now on."""
    delta = MetadataDelta(image.offset)
    delta.topics = dict.fromkeys(image.topics)
    delta.partitions = {
        TopicIdPartition(topic.topic_id, index): None for topic, index, _ in image.partitions()
    }
    delta.brokers = dict.fromkeys(image.brokers)
    delta.controllers = dict.fromkeys(image.controllers)
    delta.configs = dict.fromkeys(image.configs)
    delta.features = dict.fromkeys(image.features)
    delta.quotas = dict.fromkeys(image.quotas)
    delta.scram_credentials = dict.fromkeys(image.scram_credentials)
    delta.acls = dict.fromkeys(image.acls)
    delta.delegation_tokens = dict.fromkeys(image.delegation_tokens)
    delta.producer_ids = image.next_producer_id > 0
    return delta
