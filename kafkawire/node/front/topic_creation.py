"""Creates topics when they are first used, as Kafka's AutoTopicCreationManager.

Law: the controller creates a topic once, however many clients need it; until it is published, the
topic is unknown.
"""

from __future__ import annotations

from typing import Final

from ...broker.configs import Settings
from ...broker.topics import INTERNAL, OFFSETS_TOPIC
from ...configs.topic_names import topic_name_error
from ...messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from .metadata_cache import ImageMetadata, TopicView
from .requests import Submit

TIMEOUT_MS: Final = 30_000
OFFSETS_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}


class NodeTopicCreation:
    """`TopicCreation` of a node. voters: how many nodes the cluster has at least."""

    def __init__(
        self, settings: Settings, metadata: ImageMetadata, voters: int, submit: Submit
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._voters = voters
        self._submit = submit
        self._in_flight: set[str] = set()

    def find_or_create_topic(self, name: str, now: float) -> TopicView | None:
        """Find a topic; let it be created if `auto.create.topics.enable` allows."""
        topic = self._metadata.topics.get(name)
        enabled = self._settings.flag("auto.create.topics.enable") and name not in INTERNAL
        if topic is None and enabled and topic_name_error(name) is None:
            self._create(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1), now)
        return topic

    def ensure_offsets_topic(self, now: float) -> TopicView | None:
        """Find the `__consumer_offsets` topic, or let it be created.

        It has fewer replicas than configured only where the cluster has fewer nodes.
        """
        topic = self._metadata.topics.get(OFFSETS_TOPIC)
        nodes = max(self._voters, len(self._metadata.image.brokers))
        if topic is None:
            factor = self._settings.number("offsets.topic.replication.factor")
            made = CreatableTopic(
                name=OFFSETS_TOPIC,
                num_partitions=self._settings.number("offsets.topic.num.partitions"),
                replication_factor=min(factor, nodes),
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in OFFSETS_CONFIGS.items()
                ],
            )
            self._create(made, now)
        return topic

    def _create(self, topic: CreatableTopic, now: float) -> None:
        if topic.name in self._in_flight:
            return
        self._in_flight.add(topic.name)
        self._submit(None, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), None, now)

    def created(self, request: CreateTopicsRequest) -> None:
        """Take note that a request has its response; whether it failed the next client sees."""
        self._in_flight.difference_update(topic.name for topic in request.topics)
