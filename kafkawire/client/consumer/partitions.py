"""The small values everything about consuming is said in.

Law: they are values: compared, hashed and pickled as what they hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...records import Headers, TimestampType

NO_EPOCH: Final = -1
"""A leader epoch that is not known."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """What is committed for a partition: the next offset to read, and what the user wrote to it.

    leader_epoch: of the last record read before it, -1 if not known (KIP-320).
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """What a look-up by time found: the record's offset, its timestamp and its leader epoch."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class ConsumerRecord(NamedTuple):
    """A record, and where it was read.

    timestamp: milliseconds since the epoch, -1 for none. key, value: raw bytes, None for null.
    leader_epoch: of the batch it came in; -1 where that is not known.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_type: TimestampType
    leader_epoch: int


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, both in ascending order."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped
