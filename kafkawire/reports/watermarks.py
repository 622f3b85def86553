"""Tracks the end offsets of partitions, to compute the lag of committed offsets.

An end offset applies to commits after the response that reports it; an end that was never
reported is unknown, not zero.
"""

from __future__ import annotations

from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import partition_references
from kafkawire.messages.api_key import ApiKey

from .reading import Collector, Reading

FETCH: Final = ApiKey.FETCH

LATEST: Final = -1
"""The timestamp with which ListOffsets requests the end offset."""

READ_COMMITTED: Final = 1
"""With this isolation level, ListOffsets returns the last stable offset as the end."""


class Watermarks(Collector):
    """Collects the last reported end offset of each partition.

    Topics are stored by name, or by id while the name is unknown. The ends of a topic that was
    created again, which has another id, replace those of the one before.
    """

    apis = frozenset({FETCH, ApiKey.LIST_OFFSETS})
    entities = frozenset()

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        # topic -> partition -> number of the report, and the end offset
        self._ends: dict[object, dict[int, tuple[int, int]]] = {}
        # name and id of a topic in Fetch responses -> its ends, until another name is learned
        self._fetched_ends: dict[tuple[str, bytes], dict[int, tuple[int, int]]] = {}
        self._reports = 0
        self._unnamed = 0  # topics stored by id
        self._caught_up = 0  # learned names handled so far

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Handle the next exchange."""
        request, response = exchange.request, exchange.response
        if response is None or response.message is None:
            return
        self._catch_up()
        self._reports += 1
        if response.api_key == FETCH:
            self._fetched(response)
        elif request is not None:
            self._listed(request, response)

    def _fetched(self, response: Row) -> None:
        message: Any = response.message
        names = self._reading.context.names
        for one in message.responses or ():
            reference = one.topic, one.topic_id
            ends = self._fetched_ends.get(reference)
            for struct in one.partitions or ():
                end = struct.high_watermark
                if end >= 0 and struct.error_code == 0:
                    if ends is None:
                        ends = self._ends_of(names.topic(*reference))
                        self._fetched_ends[reference] = ends
                    ends[struct.partition_index] = self._reports, end

    def _listed(self, request: Row, response: Row) -> None:
        message: Any = request.message
        if message is None or message.isolation_level == READ_COMMITTED:
            return
        ends = {
            (one.topic.key, one.partition)
            for one in partition_references(request, self._reading.context.names)
            if getattr(one.struct, "timestamp", None) == LATEST
        }
        for one in partition_references(response, self._reading.context.names):
            struct: Any = one.struct
            offset = max([struct.offset, *(struct.old_style_offsets or ())])
            if (one.topic.key, one.partition) in ends and struct.error_code == 0 and offset >= 0:
                self._ends_of(one.topic)[one.partition] = self._reports, offset

    def _ends_of(self, topic: Topic) -> dict[int, tuple[int, int]]:
        """Return the end offsets of a topic, to set some."""
        where = topic.name or topic.id
        ends = self._ends.get(where)
        if ends is None:
            ends = self._ends[where] = {}
            self._unnamed += topic.name is None
        return ends

    def lag(self, topic: Topic, partition: int, offset: int) -> int | None:
        """Return the lag of a committed offset; None if the end offset is unknown."""
        end = self._find(topic, partition)
        if self._unnamed or (end is None and topic.name is None):
            self._reading.name_topics()  # ids whose names come later in the capture
            end = self._find(topic, partition)
        return None if end is None else max(0, end - offset)

    def _find(self, topic: Topic, partition: int) -> int | None:
        self._catch_up()
        end = self._ends.get(topic.name or topic.id, {}).get(partition)
        return None if end is None else end[1]

    def _catch_up(self) -> None:
        """Move ends stored by topic id to the topic name, once it is known."""
        names = self._reading.context.names
        while self._caught_up < len(names.named):
            id = names.named[self._caught_up]
            self._caught_up += 1
            self._fetched_ends.clear()
            ends = self._ends.pop(id, None)
            if ends is not None:
                self._unnamed -= 1
                of_topic = self._ends.setdefault(names.topic(None, id).name, {})
                for partition, end in ends.items():
                    of_topic[partition] = max(end, of_topic.get(partition, end))
