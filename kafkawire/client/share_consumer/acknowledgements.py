"""Acknowledgements of acquired records: their types, and ranges of offsets with a type each.

A range has one type; work and memory grow with ranges, never with the offsets that a broker
names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ...protocol.error_code import ErrorCode
from ..consumer.failures import ConsumerError
from ..consumer.partitions import TopicPartition


class AcknowledgeType(IntEnum):
    """What becomes of a delivered record."""

    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """It was not processed: it is delivered again, up to the group's delivery count limit."""
    REJECT = 3
    """It cannot be processed: it is not delivered again."""
    RENEW = 4
    """It is still being processed: its acquisition lock begins anew (KIP-1222)."""


GAP = 0
"""The type of an offset without a record for the user: control records, compacted offsets."""


class AcknowledgementRange(NamedTuple):
    """The offsets from first to last, both included, and their type; `GAP` or AcknowledgeType."""

    first_offset: int
    last_offset: int
    type: int


class SharePartition(NamedTuple):
    """A partition in a share session: topic_id, 16 bytes, is what requests have."""

    topic: str
    partition: int
    topic_id: bytes

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition as records name it."""
        return TopicPartition(self.topic, self.partition)


class AcknowledgeFailed(ConsumerError):
    """Acknowledgements did not take effect: the records may be delivered again.

    code: INVALID_RECORD_STATE where the acquisition lock had expired, SHARE_SESSION_NOT_FOUND where
    the connection to the leader was lost, NOT_LEADER_OR_FOLLOWER where another broker leads now.
    """


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Acknowledgements of one partition, for the broker that it was fetched from.

    serial: their number. deadline: when they fail if they have not been sent by then.
    """

    serial: int
    node: int
    partition: SharePartition
    ranges: tuple[AcknowledgementRange, ...]
    deadline: float

    @property
    def renews(self) -> bool:
        """Whether any acquisition lock is to begin anew."""
        return any(each.type == AcknowledgeType.RENEW for each in self.ranges)


@dataclass(frozen=True, slots=True)
class AcknowledgementsEnded:
    """How acknowledgements ended: error is None where they have taken effect."""

    acknowledgements: Acknowledgements
    error: AcknowledgeFailed | None = None


def ended(each: Acknowledgements, reason: str, code: int) -> AcknowledgementsEnded:
    """Return how acknowledgements ended that failed."""
    if code == ErrorCode.NONE:
        return AcknowledgementsEnded(each)
    error = AcknowledgeFailed(reason, code, [each.partition.topic_partition])
    return AcknowledgementsEnded(each, error)


def ranges_of(types: Mapping[int, int]) -> tuple[AcknowledgementRange, ...]:
    """Join offsets that follow each other and have the same type, in ascending order."""
    ranges: list[AcknowledgementRange] = []
    for offset, kind in sorted(types.items()):
        last = ranges[-1] if ranges else None
        if last is not None and last.type == kind and last.last_offset == offset - 1:
            ranges[-1] = last._replace(last_offset=offset)
        else:
            ranges.append(AcknowledgementRange(offset, offset, kind))
    return tuple(ranges)


def users_ranges(ranges: Iterable[AcknowledgementRange]) -> tuple[AcknowledgementRange, ...]:
    """Return the ranges of records that the user has seen."""
    return tuple(each for each in ranges if each.type != GAP)
