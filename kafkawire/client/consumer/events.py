"""What the user of a consumer machine says to it, and what it says to its user.

Law: whatever has a key comes back with that key, once; a Poll ends in Deliver or Raise, or in the
user's StopPolling.

    Subscribe, Assign, Seek, Poll, Commit, ... ─▶ Consumer ─▶ Deliver, Raise, CallListener, ...
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum

from .configuration import ResetPolicy
from .failures import ConsumerError
from .offsets.committing import CommitKind
from .partitions import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

# What the user wants to read.


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Read topics by name or pattern, as a member of the group. has_listener: whether CallListener is
    wanted (and then answered by ListenerDone).
    """

    wanted: tuple[str, ...] | re.Pattern[str]
    has_listener: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """Read these partitions, outside of any assignment."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Read nothing; out of the group. Answered by Done."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Seek:
    """Read a partition from that offset on."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class SeekTo:
    """Read partitions from where a policy says."""

    partitions: tuple[TopicPartition, ...]
    policy: ResetPolicy


@dataclass(frozen=True, slots=True)
class Pause:
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    partitions: tuple[TopicPartition, ...]


# Reading.


@dataclass(frozen=True, slots=True)
class Poll:
    """The user is back, with all it got before dealt with, and waits for records."""

    most: int | None = None


@dataclass(frozen=True, slots=True)
class StopPolling:
    """The user waits no longer."""


@dataclass(frozen=True, slots=True)
class ReturnRecords:
    """The last of what was delivered, which the user has not come to."""

    records: list[ConsumerRecord]


@dataclass(frozen=True, slots=True)
class ListenerDone:
    """The listener has returned."""

    serial: int


# Offsets.


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit these offsets, or all that was delivered. Answered by Done."""

    key: Hashable
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None
    kind: CommitKind
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetCommitted:
    """Ask what the group has committed. Answered by CommittedFound."""

    key: Hashable
    partitions: tuple[TopicPartition, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetOffsets:
    """Ask for offsets by time (`lookups`). Answered by OffsetsFound."""

    key: Hashable
    times: Mapping[TopicPartition, int]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class GetPosition:
    """Ask where a partition is read next. Answered by PositionFound, once that is known."""

    key: Hashable
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Nobody waits for that position any more."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Close:
    """Commit, leave, end. Answered by Closed, within the time given."""

    timeout_s: float


# Effects.


class Change(Enum):
    """What a listener is told."""

    REVOKED = "still ours: commit, then let go"
    ASSIGNED = "ours now"
    LOST = "no longer ours"


@dataclass(frozen=True, slots=True)
class CallListener:
    """Tell the listener, while the user is in a poll, close or unsubscribe; then ListenerDone."""

    serial: int
    change: Change
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """What was delivered of these partitions, and not dealt with, is somebody else's now."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Records for the poll."""

    records: list[ConsumerRecord]


@dataclass(frozen=True, slots=True)
class Raise:
    """An error for the poll."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Warn:
    """Something went wrong that nobody waits for."""

    error: ConsumerError


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an Unsubscribe or Commit."""

    key: Hashable
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class CommittedFound:
    """None where nothing is committed."""

    key: Hashable
    found: Mapping[TopicPartition, OffsetAndMetadata | None]
    error: ConsumerError | None = None


@dataclass(frozen=True, slots=True)
class OffsetsFound:
    """found: None where no record is that late."""

    key: Hashable
    found: Mapping[TopicPartition, OffsetAndTimestamp | None]
    failed: Mapping[TopicPartition, ConsumerError]


@dataclass(frozen=True, slots=True)
class PositionFound:
    """offset None: the partition is no longer ours."""

    key: Hashable
    offset: int | None


@dataclass(frozen=True, slots=True)
class Closed:
    """Nothing more comes."""
