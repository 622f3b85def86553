"""How far partitions are written, as brokers told it last: what a committed offset lags behind.

Law: a high watermark counts from the response that told it on, for commits after it; what was never
told is unknown, not zero.
"""

from __future__ import annotations

from typing import Any, Final

from kafkawire.capture.exchanges import Exchange
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.mentions import Mentions
from kafkawire.capture.tables.places import spoken
from kafkawire.capture.topic_ids import Topic
from kafkawire.messages.api_key import ApiKey

from .reading import Reading, Tally

LATEST: Final = -1
"""The timestamp with which ListOffsets asks for the end."""

READ_COMMITTED: Final = 1
"""Who reads so is told the last stable offset for the end."""


class Watermarks(Tally):
    """The high watermarks told so far; partitions bound their number."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._topics: dict[object, Topic] = {}
        self._told: dict[tuple[object, int], int] = {}

    def exchange(self, exchange: Exchange, _: Mentions) -> None:
        """Take the next exchange."""
        response = exchange.response
        if response is None or response.message is None:
            return
        if response.api_key == ApiKey.FETCH:
            self._fetched(response)
        elif response.api_key == ApiKey.LIST_OFFSETS and exchange.request is not None:
            self._listed(exchange.request, response)

    def _fetched(self, response: Row) -> None:
        for one in spoken(response, self._reading.context.names):
            what: Any = one.what
            if what.error_code == 0 and what.high_watermark >= 0:
                self._tell(one.topic, one.partition, what.high_watermark)

    def _listed(self, request: Row, response: Row) -> None:
        asked: Any = request.message
        if asked is None or asked.isolation_level == READ_COMMITTED:
            return
        ends = {
            (one.topic.key, one.partition)
            for one in spoken(request, self._reading.context.names)
            if getattr(one.what, "timestamp", None) == LATEST
        }
        for one in spoken(response, self._reading.context.names):
            what: Any = one.what
            offset = max([what.offset, *(what.old_style_offsets or ())])
            if (one.topic.key, one.partition) in ends and what.error_code == 0 and offset >= 0:
                self._tell(one.topic, one.partition, offset)

    def _tell(self, topic: Topic, partition: int, offset: int) -> None:
        self._topics[topic.key] = topic
        self._told[topic.key, partition] = offset

    def lag(self, topic: Topic, partition: int, offset: int) -> int | None:
        """Say how far a committed offset is behind the end; None where the end is not known."""
        told = self._told.get((topic.key, partition))
        if told is None:
            told = next(
                (
                    self._told[key, partition]
                    for key in self._same(topic)
                    if (key, partition) in self._told
                ),
                None,
            )
        return None if told is None else max(0, told - offset)

    def _same(self, topic: Topic) -> list[object]:
        """Find the other ways in which messages spoke of a topic: one by name, one by id."""
        same = self._called(topic)
        if not same and any(one.name is None for one in (topic, *self._topics.values())):
            self._reading.name_topics()  # ids whose names come later in the capture
            same = self._called(topic)
        return same

    def _called(self, topic: Topic) -> list[object]:
        topics = self._topics.items()
        return [key for key, one in topics if one.name is not None and one.name == topic.name]
