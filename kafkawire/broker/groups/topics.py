"""The topics of a cluster as consumer, share and Streams groups use them."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from ..metadata_cache import MetadataCache

HASH_BYTES: Final = 8


class Topic(NamedTuple):
    """A topic: its id and the number of its partitions."""

    topic_id: bytes
    partitions: int


Racks = tuple[tuple[int, tuple[str, ...]], ...]
"""(partition, racks in order) of those whose replicas are in racks."""


class Topics(Protocol):
    """The topics of a cluster. version: rises when they change.

    created: the version with which the newest topic came.
    """

    @property
    def version(self) -> int: ...
    @property
    def created(self) -> int: ...
    def find(self, name: str, /) -> Topic | None:
        """Find a topic."""

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""

    def racks(self, name: str, /) -> Racks:
        """Return the racks of the replicas of a topic's partitions."""

    def name(self, topic_id: bytes, /) -> str | None:
        """Return the name of a topic; None if it is deleted."""


class ClusterTopics:
    """The topics of the metadata."""

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    @property
    def version(self) -> int:
        return self._metadata.offset

    @property
    def created(self) -> int:
        return self._metadata.topics.created

    def find(self, name: str) -> Topic | None:
        """Find a topic."""
        topic = self._metadata.topics.get(name)
        return None if topic is None else Topic(topic.topic_id, len(topic.partitions))

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""
        return (topic.name for topic in self._metadata.topics)

    def racks(self, name: str) -> Racks:
        """Return the racks of the replicas of a topic's partitions."""
        topic, brokers = self._metadata.topics.get(name), self._metadata.image.brokers
        partitions = []
        for partition in () if topic is None else topic.partitions:
            replicas = (brokers.get(each) for each in partition.replicas)
            racks = sorted(each.rack for each in replicas if each is not None and each.rack)
            if racks:
                partitions.append((partition.index, tuple(racks)))
        return tuple(partitions)

    def name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None if it is deleted."""
        topic = self._metadata.topics.by_id(topic_id)
        return None if topic is None else topic.name


def metadata_hash(topics: Topics, names: Iterable[str]) -> int:
    """Return a number for the topics that exist, an int64; 0 if none does.

    It differs when a topic is another one, has more partitions, or replicas in other racks
    (KIP-1101).
    """
    digest, exists = blake2b(digest_size=HASH_BYTES), False
    for name in sorted(names):
        topic = topics.find(name)
        if topic is not None:
            exists = True
            digest.update(topic.topic_id + topic.partitions.to_bytes(4, "big"))
            if racks := topics.racks(name):
                digest.update(repr(racks).encode())
    return int.from_bytes(digest.digest(), "big", signed=True) if exists else 0


def topic_ids(topics: Topics, names: Iterable[str]) -> frozenset[bytes]:
    """Return the ids of the topics that exist."""
    topics_found = map(topics.find, names)
    return frozenset(topic.topic_id for topic in topics_found if topic is not None)


def partition_counts(topics: Topics, names: Iterable[str]) -> dict[bytes, int]:
    """Return topic id -> number of partitions, of the topics that exist."""
    existing = map(topics.find, names)
    return {topic.topic_id: topic.partitions for topic in existing if topic is not None}
