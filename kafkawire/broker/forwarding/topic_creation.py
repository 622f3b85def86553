"""Creates topics when they are first used, as Kafka's AutoTopicCreationManager.

The controller creates a topic once, however many clients need it; until it is published, the
topic is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...configs.topic_names import topic_name_error
from ...messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ...messages.create_topics_response import CreateTopicsResponse
from ...metadata import MetadataDelta
from ...primitives import Message
from ...protocol import ErrorCode
from ...protocol.error_code import error_of
from ...records.compression.codecs import TOPIC_CODEC_NAMES
from ..configs import Settings
from ..metadata_cache import MetadataCache, TopicMetadata
from ..topics import INTERNAL, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from . import Submit

TIMEOUT_MS: Final = 30_000
AGAIN: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER})
OFFSETS_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
TRANSACTIONS_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "uncompressed",
    "unclean.leader.election.enable": "false",
}
DEAD_LETTERS: Final = (
    ("errors.deadletterqueue.group.enable", "true"),
    ("message.timestamp.type", "CreateTime"),
)
DEAD_LETTERS_RETRY_AFTER: Final = 2.0
"""Seconds for which a dead letter queue that could not be created is not requested again."""
SHARE_STATE_CONFIGS: Final = {"cleanup.policy": "delete", "retention.ms": "-1"}


class TopicCreation:
    """Creates topics without a CreateTopics of a client. voters: how many nodes there are at least.

    initial: name -> partitions of topics to create as soon as there are enough brokers.
    """

    def __init__(
        self,
        settings: Settings,
        metadata: MetadataCache,
        voters: int,
        submit: Submit,
        initial: Mapping[str, int] = {},
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._voters = voters
        self._submit = submit
        self._in_flight: set[str] = set()
        self._initial = dict(initial)
        self._retry_after: dict[str, float] = {}
        """Topic of a group -> seconds until it is requested again if it fails."""
        self._failed: dict[str, tuple[str, float]] = {}
        """Topic that could not be created -> why, and until when it is not requested again."""

    def create_initial(self, now: float) -> None:
        """Create the initial topics that do not exist, once."""
        if not self._initial:
            return
        for name in list(self._initial):
            if name in self._metadata.topics:
                del self._initial[name]
        active = sum(each.is_active for each in self._metadata.image.brokers.values())
        if active >= self._settings.number("default.replication.factor"):
            for name, partitions in self._initial.items():
                topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
                self._create(topic, now)

    def find_or_create_topic(self, name: str, now: float) -> TopicMetadata | None:
        """Find a topic; let it be created if `auto.create.topics.enable` allows."""
        topic = self._metadata.topics.get(name)
        enabled = self._settings.flag("auto.create.topics.enable") and name not in INTERNAL
        if topic is None and enabled and topic_name_error(name) is None:
            self._create(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1), now)
        return topic

    def ensure_offsets_topic(self, now: float) -> TopicMetadata | None:
        """Find the `__consumer_offsets` topic, or let it be created.

        It has fewer replicas than configured only where the cluster has fewer nodes.
        """
        factor = self._factor("offsets.topic.replication.factor")
        count = self._settings.number("offsets.topic.num.partitions")
        return self._ensure(OFFSETS_TOPIC, count, factor, OFFSETS_CONFIGS, now)

    def ensure_transactions_topic(self, now: float) -> TopicMetadata | None:
        """Find the `__transaction_state` topic, or let it be created, as the other one."""
        factor = self._factor("transaction.state.log.replication.factor")
        count = self._settings.number("transaction.state.log.num.partitions")
        in_sync = self._settings.number("transaction.state.log.min.isr")
        configs = TRANSACTIONS_CONFIGS | {
            "min.insync.replicas": str(min(in_sync, factor)),
            "segment.bytes": self._settings.text("transaction.state.log.segment.bytes"),
        }
        return self._ensure(TRANSACTIONS_TOPIC, count, factor, configs, now)

    def ensure_share_state_topic(self, now: float) -> TopicMetadata | None:
        """Find the `__share_group_state` topic, or let it be created, as the other ones."""
        settings = self._settings
        factor = self._factor("share.coordinator.state.topic.replication.factor")
        count = settings.number("share.coordinator.state.topic.num.partitions")
        codec = settings.number("share.coordinator.state.topic.compression.codec")
        in_sync = settings.number("share.coordinator.state.topic.min.isr")
        configs = SHARE_STATE_CONFIGS | {
            "compression.type": TOPIC_CODEC_NAMES[codec],
            "min.insync.replicas": str(min(in_sync, factor)),
            "segment.bytes": settings.text("share.coordinator.state.topic.segment.bytes"),
        }
        return self._ensure(SHARE_STATE_TOPIC, count, factor, configs, now)

    def create_internal(
        self, topics: Iterable[CreatableTopic], retry_after: float, now: float
    ) -> None:
        """Let topics be created: internal ones of Streams groups, dead letter queues.

        retry_after: seconds for which one that could not be created is not requested again.
        """
        failed = {name for name, _ in self.failures(list(self._failed), now)}
        for topic in topics:
            if topic.name not in failed:
                self._retry_after[topic.name] = retry_after
                self._create(topic, now)

    def create_dead_letter_topic(self, name: str, now: float) -> None:
        """Let the dead letter queue of a share group be created."""
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in DEAD_LETTERS]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=configs)
        self.create_internal([topic], DEAD_LETTERS_RETRY_AFTER, now)

    def failures(self, names: Iterable[str], now: float) -> list[tuple[str, str]]:
        """Return the topics that could not be created a short time ago, and why."""
        for name in [name for name, (_, until) in self._failed.items() if until <= now]:
            del self._failed[name]
        return [(name, self._failed[name][0]) for name in names if name in self._failed]

    def is_creating(self, name: str) -> bool:
        """Return whether a topic is being created, and not published yet."""
        return name in self._in_flight

    def _factor(self, key: str) -> int:
        nodes = max(self._voters, len(self._metadata.image.brokers))
        return min(self._settings.number(key), nodes)

    def _ensure(
        self, name: str, count: int, factor: int, configs: Mapping[str, str], now: float
    ) -> TopicMetadata | None:
        topic = self._metadata.topics.get(name)
        if topic is None:
            creatable = CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=factor,
                configs=[
                    CreatableTopicConfig(name=key, value=value) for key, value in configs.items()
                ],
            )
            self._create(creatable, now)
        return topic

    def _create(self, topic: CreatableTopic, now: float) -> None:
        if topic.name in self._in_flight:
            return
        self._in_flight.add(topic.name)
        self._submit(None, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), None, now)

    def published(self, delta: MetadataDelta) -> None:
        """Take note of the topics that are there, or are gone already."""
        self._in_flight.difference_update(delta.deleted_topics.values())
        self._in_flight -= {name for name in self._in_flight if name in self._metadata.topics}

    def created(self, request: CreateTopicsRequest, response: Message | None, now: float) -> None:
        """Take note that a request has its response; whether it failed the next client sees.

        An initial topic that the controller refuses is not requested again.
        """
        if not isinstance(response, CreateTopicsResponse):
            self._in_flight.difference_update(topic.name for topic in request.topics)
        else:
            for each in response.topics:
                retry_after = self._retry_after.pop(each.name, None)
                if each.error_code:
                    self._in_flight.discard(each.name)
                    if retry_after is not None and each.error_code not in AGAIN:
                        reason = each.error_message or error_of(each.error_code).name
                        self._failed[each.name] = reason, now + retry_after
                if each.error_code not in AGAIN:
                    self._initial.pop(each.name, None)
