"""Counts the partitions of topics, as Metadata responses list them."""

from __future__ import annotations

from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import ZERO, TopicKey
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.messages.api_key import ApiKey

from ..reading import Collector

MAX_TOPICS: Final = 100_000
"""Topics that are counted, each by name and by id."""


class PartitionCounts(Collector):
    """The number of partitions of each topic, as last listed."""

    apis = frozenset({ApiKey.METADATA})
    entities = frozenset[str]()

    def __init__(self) -> None:
        self._counts: dict[TopicKey, int] = {}

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note the topics of a Metadata response."""
        message: Any = None if exchange.response is None else exchange.response.message
        if message is None:
            return
        counts = self._counts
        for topic in message.topics or ():
            if not topic.partitions or len(counts) >= MAX_TOPICS:
                continue
            count, topic_id = len(topic.partitions), TOPIC_ID.of(topic)
            if topic.name:
                counts[topic.name] = count
            if topic_id and topic_id != ZERO:
                counts[topic_id] = count

    def of(self, topic: TopicKey) -> int:
        """Return the number of partitions of a topic, by its name or id; 0 if it is unknown."""
        return self._counts.get(topic, 0)
