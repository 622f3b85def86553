"""The replication quotas that the metadata sets for a broker (KIP-73).

A rate is the broker's own or that of all brokers; which replicas are throttled is a config of
topics, `PARTITION:BROKER,...` or `*`. An entry that is not valid throttles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...configs import ResourceType
from ...metadata import MetadataDelta, MetadataImage, TopicIdPartition, broker_value
from ...replication import ThrottleChanged

LEADER: Final = "leader.replication.throttled"
FOLLOWER: Final = "follower.replication.throttled"
NO_LIMIT: Final = 2**63 - 1


class Throttles:
    """The quotas of a broker as they were published last."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._published = ThrottleChanged()

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> ThrottleChanged | None:
        """Return the quotas if they changed."""
        was = self._published
        if not delta.configs and not (was.leader_replicas or was.follower_partitions):
            return None
        throttled = list(self._partitions(image, LEADER))
        self._published = ThrottleChanged(
            self._rate(image, LEADER),
            self._rate(image, FOLLOWER),
            frozenset((key, each) for key in throttled for each in _replicas(image, key)),
            frozenset(self._partitions(image, FOLLOWER)),
        )
        return None if self._published == was else self._published

    def _rate(self, image: MetadataImage, side: str) -> float | None:
        rate = broker_value(image, f"{side}.rate", {}, str(self._broker_id))
        is_limit = rate.isdecimal() and int(rate) < NO_LIMIT
        return float(rate) if is_limit else None

    def _partitions(self, image: MetadataImage, side: str) -> Iterator[TopicIdPartition]:
        """Find the partitions that are throttled on this broker."""
        for resource, values in image.configs.items():
            listed = values.get(f"{side}.replicas")
            topic = image.topic(resource.name) if resource.type == ResourceType.TOPIC else None
            if topic is None or not listed:
                continue
            wanted = {each.strip() for each in listed.split(",")}
            for index, partition in topic.partitions.items():
                if self._broker_id not in partition.replicas:
                    continue
                if "*" in wanted or f"{index}:{self._broker_id}" in wanted:
                    yield TopicIdPartition(topic.topic_id, index)


def _replicas(image: MetadataImage, key: TopicIdPartition) -> tuple[int, ...]:
    partition = image.partition(key)
    return () if partition is None else tuple(partition.replicas)
