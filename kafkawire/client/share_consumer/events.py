"""Events that the user sends to a share consumer machine, and effects that it returns to the user.

As for a consumer, whose Poll, Raise, Close, ... these are: an event with a key is completed by
one effect with that key; a Poll ends in Deliver or Raise, or in the user's StopPolling.

    Subscribe, Poll, Acknowledge, Commit, ... ─▶ ShareConsumer ─▶ Deliver, Raise, Committed, ...
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ..consumer.events import (
    Close,
    Closed,
    Done,
    Poll,
    Raise,
    StopPolling,
    Unsubscribe,
    Warn,
)
from ..consumer.partitions import TopicPartition
from ..requests import OwnerEffect, OwnerEvent
from .acknowledgements import AcknowledgeFailed, AcknowledgementRange, AcknowledgeType
from .records import ShareRecord


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to topics by name, as a member of the share group."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReturnRecords:
    """The user returns the last delivered records, which it has not processed."""

    records: list[ShareRecord]


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Say what becomes of a delivered record; sent with the next poll or commit."""

    partition: TopicPartition
    offset: int
    type: AcknowledgeType


@dataclass(frozen=True, slots=True)
class Release:
    """The user cannot get a delivered record: it is released, in both modes.

    In explicit mode the user may acknowledge it otherwise.
    """

    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Send all acknowledgements. Completed by Committed, once all have ended or the time is over.

    In implicit mode, delivered records are accepted.
    """

    key: Hashable
    timeout_s: float


UserEvent = (
    Subscribe
    | Unsubscribe
    | Poll
    | StopPolling
    | ReturnRecords
    | Acknowledge
    | Release
    | Commit
    | Close
)


@dataclass(frozen=True, slots=True)
class Deliver:
    """The poll returns records."""

    records: list[ShareRecord]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Acknowledgements of a partition have ended; error: why they have not taken effect."""

    partition: TopicPartition
    ranges: tuple[AcknowledgementRange, ...]
    error: AcknowledgeFailed | None


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit has ended: an error for each partition, None where all is in effect."""

    key: Hashable
    results: Mapping[TopicPartition, AcknowledgeFailed | None]


UserEffect = Deliver | Raise | Warn | Done | Acknowledged | Committed | Closed

ShareConsumerEvent = UserEvent | OwnerEvent
ShareConsumerEffect = UserEffect | OwnerEffect
