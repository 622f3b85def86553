"""The values of the consumer: partitions, offsets, records.

They are compared, hashed and pickled by value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, Self

from ...records import Headers, TimestampType
from ..serialization import KeyT, ValueT

NO_EPOCH: Final = -1
"""An unknown leader epoch."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class SubscriptionPattern(NamedTuple):
    """A pattern of topic names in RE2's syntax, which the brokers match (KIP-848).

    It matches whole names, and needs `group.protocol=consumer`.
    """

    pattern: str


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, with the user's metadata.

    leader_epoch: of the last record read before it, -1 if unknown (KIP-320).
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """The result of a lookup by time: a record's offset, timestamp and leader epoch."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class EpochEnd(NamedTuple):
    """The latest epoch up to the requested one, and the offset after its last record.

    Both are -1 where the leader has no such epoch.
    """

    leader_epoch: int
    end_offset: int


class ConsumerRecord(NamedTuple, Generic[KeyT, ValueT]):
    """A record with its partition and offset.

    timestamp: milliseconds since the epoch, -1 for none. key, value: bytes, or what deserializers
    made of them; None for null. leader_epoch: of its batch, -1 if unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: KeyT | None
    value: ValueT | None
    headers: Headers
    timestamp_type: TimestampType
    leader_epoch: int

    @property
    def consumer_record(self) -> Self:
        """The record itself; of a record of a share group, that without its delivery count."""
        return self


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, both in ascending order."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped
