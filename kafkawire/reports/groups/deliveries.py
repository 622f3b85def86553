"""Counts what members of share groups acquired and acknowledged (KIP-932).

A record that is acquired with a delivery count above 1 is delivered again: a member released it,
or did not acknowledge it in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic, TopicNames
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.messages.api_key import ApiKey

APIS: Final = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
TYPES: Final = ("gap", "accepted", "released", "rejected", "renewed")
"""Acknowledgement types by number, as in AcknowledgeTypes of ShareAcknowledge."""
UNKNOWN: Final = "unknown"
REFUSED: Final = "refused"
"""Acknowledgements that the broker answered with an error."""
COUNTED: Final = (*TYPES, UNKNOWN, REFUSED)


class Acknowledged(NamedTuple):
    """Acknowledgements of one type, of a partition. records: their number."""

    type: str
    records: int


class Deliveries:
    """Counts of records.

    acquired: all of them; redelivered: those with a delivery count above 1. max_delivery_count: 0
    for none. acknowledged: type -> records. first_ns, last_ns: times of the messages, NO_TIME if
    unknown.
    """

    def __init__(self) -> None:
        self.acquired = self.redelivered = self.max_delivery_count = 0
        self.acknowledged: Counter[str] = Counter()
        self.first_ns = self.last_ns = NO_TIME

    def acquire(self, records: int, delivery_count: int) -> None:
        """Count acquired records."""
        self.acquired += records
        if delivery_count > 1:
            self.redelivered += records
        self.max_delivery_count = max(self.max_delivery_count, delivery_count)

    def happened(self, time_ns: int) -> None:
        """Note the time of a message."""
        if time_ns == NO_TIME:
            return
        self.first_ns = time_ns if self.first_ns == NO_TIME else min(self.first_ns, time_ns)
        self.last_ns = max(self.last_ns, time_ns)

    def __iadd__(self, other: Deliveries) -> Deliveries:
        """Add the counts of another member or partition."""
        self.acquired += other.acquired
        self.redelivered += other.redelivered
        self.max_delivery_count = max(self.max_delivery_count, other.max_delivery_count)
        self.acknowledged += other.acknowledged
        for time_ns in (other.first_ns, other.last_ns):
            self.happened(time_ns)
        return self

    def json(self) -> dict[str, int]:
        """Return the JSON form."""
        return {
            "acquired": self.acquired,
            "redelivered": self.redelivered,
            "max_delivery_count": self.max_delivery_count,
            **{type: self.acknowledged[type] for type in COUNTED},
        }


class MemberDeliveries:
    """The deliveries of a member by partition."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[object, int], tuple[Topic, Deliveries]] = {}

    def __bool__(self) -> bool:
        return bool(self.partitions)

    @property
    def total(self) -> Deliveries:
        """The sum of all partitions."""
        total = Deliveries()
        for _, each in self.partitions.values():
            total += each
        return total

    def add(self, exchange: Exchange, names: TopicNames) -> None:
        """Count a ShareFetch or a ShareAcknowledge."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or None in (request.message, response.message):
            return
        refused = set()
        for topic, each in _partitions(response.message, "responses", names):
            key = topic.key, each.partition_index
            if getattr(each, "acknowledge_error_code", each.error_code):
                refused.add(key)
            for range_ in getattr(each, "acquired_records", ()):
                records = max(0, range_.last_offset - range_.first_offset + 1)
                self._of(topic, key, response.time_ns).acquire(records, range_.delivery_count)
        failed = bool(getattr(response.message, "error_code", 0))
        for topic, each in _partitions(request.message, "topics", names):
            key = topic.key, each.partition_index
            for one in acknowledged(each.acknowledgement_batches):
                type = REFUSED if failed or key in refused else one.type
                self._of(topic, key, request.time_ns).acknowledged[type] += one.records

    def _of(self, topic: Topic, key: tuple[object, int], time_ns: int) -> Deliveries:
        if key not in self.partitions:
            self.partitions[key] = topic, Deliveries()
        deliveries = self.partitions[key][1]
        deliveries.happened(time_ns)
        return deliveries


def _partitions(message: Any, field: str, names: TopicNames) -> Iterator[tuple[Topic, Any]]:
    for each in getattr(message, field) or ():
        topic = names.topic(None, each.topic_id)
        for partition in each.partitions:
            yield topic, partition


def acknowledged(batches: Iterable[Any]) -> Iterator[Acknowledged]:
    """Return what acknowledgement batches say: one type for all their records, or one for each."""
    for batch in batches:
        records = max(0, batch.last_offset - batch.first_offset + 1)
        types = batch.acknowledge_types
        if len(types) == 1:
            yield Acknowledged(_type(types[0]), records)
            continue
        for number, count in Counter(types[:records]).items():
            yield Acknowledged(_type(number), count)


def _type(number: int) -> str:
    return TYPES[number] if 0 <= number < len(TYPES) else UNKNOWN
