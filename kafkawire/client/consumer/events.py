"""Events that the user sends to a consumer machine, and effects that it returns to the user.

An event with a key is completed by one effect with that key; a Poll ends in Deliver,
DeliverColumns or Raise, or in the user's StopPolling.

    Subscribe, Assign, Seek, Poll, Commit, ... ─▶ Consumer ─▶ Deliver, Raise, CallListener, ...
"""

# over 300 lines: the one list of what a consumer and its user exchange

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum

from ..requests import OwnerEffect, OwnerEvent
from .columns import FetchedColumns
from .configuration import ResetPolicy
from .failures import ConsumerError
from .offsets.committing import CommitKind
from .partitions import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    SubscriptionPattern,
    TopicPartition,
)

# Subscriptions and positions.


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to topics by name or pattern, as a member of the group.

    has_listener: whether the user handles CallListener, and sends ListenerDone.
    """

    topics: tuple[str, ...] | re.Pattern[str] | SubscriptionPattern
    has_listener: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """Assign partitions manually, without a group assignment."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Unsubscribe and leave the group. Completed by Done."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Seek:
    """Set the position of a partition."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class SeekTo:
    """Reset the positions of partitions by a policy."""

    partitions: tuple[TopicPartition, ...]
    policy: ResetPolicy


@dataclass(frozen=True, slots=True)
class Pause:
    """Deliver no records of these partitions until they are resumed."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """Deliver records of paused partitions again."""

    partitions: tuple[TopicPartition, ...]


# Polling.


@dataclass(frozen=True, slots=True)
class Poll:
    """The user waits for records, and has processed all earlier ones.

    columns: as columns, which have any number of records if max_records is None.
    """

    max_records: int | None = None
    columns: bool = False


@dataclass(frozen=True, slots=True)
class StopPolling:
    """The user stops waiting for records."""


@dataclass(frozen=True, slots=True)
class ReturnRecords:
    """The user returns the last delivered records, which it has not processed."""

    records: list[ConsumerRecord]


@dataclass(frozen=True, slots=True)
class ReturnColumns:
    """The user returns the last delivered columns, which it has not processed."""

    columns: FetchedColumns


@dataclass(frozen=True, slots=True)
class ListenerDone:
    """The listener has returned."""

    serial: int


# Offsets.


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit offsets; None: those of all delivered records. Completed by Done."""

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None
    kind: CommitKind
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetCommitted:
    """Fetch committed offsets. Completed by CommittedFound."""

    key: Hashable
    partitions: tuple[TopicPartition, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetOffsets:
    """Look up offsets by timestamp (`lookups`). Completed by OffsetsFound."""

    key: Hashable
    times: Mapping[TopicPartition, int]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetPosition:
    """Wait for the position of a partition. Completed by PositionFound."""

    key: Hashable
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class CancelGetPosition:
    """Cancel a GetPosition."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Close:
    """Commit, leave the group and close. Completed by Closed within the timeout."""

    timeout_s: float


UserEvent = (
    Subscribe
    | Assign
    | Unsubscribe
    | Seek
    | SeekTo
    | Pause
    | Resume
    | Poll
    | StopPolling
    | ReturnRecords
    | ReturnColumns
    | ListenerDone
    | Commit
    | GetCommitted
    | GetOffsets
    | GetPosition
    | CancelGetPosition
    | Close
)


# Effects.


class Change(Enum):
    """The change that a rebalance listener is called for."""

    REVOKED = "still assigned, about to be revoked"
    ASSIGNED = "newly assigned"
    LOST = "no longer assigned"


@dataclass(frozen=True, slots=True)
class CallListener:
    """Call the listener during a poll, close or unsubscribe; ListenerDone must follow."""

    serial: int
    change: Change
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DiscardRecords:
    """Discard delivered records of lost partitions that are not processed."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """The poll returns records."""

    records: list[ConsumerRecord]


@dataclass(frozen=True, slots=True)
class DeliverColumns:
    """The poll returns columns."""

    columns: FetchedColumns


@dataclass(frozen=True, slots=True)
class Raise:
    """The poll raises an error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Warn:
    """An error in the background."""

    error: ConsumerError


@dataclass(frozen=True, slots=True)
class Done:
    """An Unsubscribe or Commit has completed."""

    key: Hashable
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """A commit has succeeded: one of the user, or an automatic one."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class CommittedFound:
    """The committed offsets; None where nothing is committed."""

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndMetadata | None]
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class OffsetsFound:
    """The offsets found; None where no record is that late."""

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndTimestamp | None]
    failed: Mapping[TopicPartition, ConsumerError]


@dataclass(frozen=True, slots=True)
class PositionFound:
    """The position; None: the partition is no longer assigned."""

    key: Hashable
    offset: int | None


@dataclass(frozen=True, slots=True)
class Closed:
    """The consumer is closed."""


UserEffect = (
    CallListener
    | DiscardRecords
    | Deliver
    | DeliverColumns
    | Raise
    | Warn
    | Done
    | OffsetsCommitted
    | CommittedFound
    | OffsetsFound
    | PositionFound
    | Closed
)

ConsumerEvent = UserEvent | OwnerEvent
ConsumerEffect = UserEffect | OwnerEffect
