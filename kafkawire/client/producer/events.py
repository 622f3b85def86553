"""Events and effects of a producer.

Each token of a Send returns in exactly one Delivered or Failed; Blocked and Appended mean
that the user is to wait in between. Each token of a TransactionEvent returns in one
TransactionDone or TransactionFailed, unless it is cancelled.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.error_code import ErrorCode
from ...records import Headers
from ..group_metadata import ConsumerGroupMetadata
from ..requests import OwnerEffect, OwnerEvent, Reason


class Send(NamedTuple):
    """A record to send.

    token: the user's id for it. partition: None leaves the choice to the partitioner.
    timestamp: milliseconds since the epoch.
    """

    token: Hashable
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Cancel:
    """The user no longer waits for a Blocked record: drop it, without a result.

    Of a TransactionEvent: what it wanted goes on, and the next one of its kind has the result.
    """

    token: Hashable


@dataclass(frozen=True, slots=True)
class Flush:
    """Send all records so far, blocked ones too, without lingering; then report Flushed."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """Accept no more records; ProducerClosed when each has its result."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Fail all records without a result."""


@dataclass(frozen=True, slots=True)
class InitTransactions:
    """Get a producer id for the transactional id; fences producers that have it (KIP-98)."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class BeginTransaction:
    """Begin a transaction: the records from now on belong to it."""

    token: Hashable


class TransactionOffset(NamedTuple):
    """The offset of a partition that a transaction commits: of the next record to read."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class SendOffsets:
    """Commit these offsets of a group in the transaction."""

    token: Hashable
    group: ConsumerGroupMetadata
    offsets: tuple[TransactionOffset, ...]


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Deliver all records and offsets and commit the transaction; or discard them and abort it."""

    token: Hashable
    commit: bool


TransactionEvent = InitTransactions | BeginTransaction | SendOffsets | EndTransaction
UserEvent = Send | Cancel | Flush | CloseProducer | Abandon | TransactionEvent


@dataclass(frozen=True, slots=True)
class Failure:
    """Why records were not delivered.

    code: the broker's error, NONE if the broker reported none. reason: why there is no response,
    None if there was one. With TIMED_OUT and DISCONNECTED the broker may have appended them.
    """

    code: ErrorCode
    reason: Reason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """The record waits for metadata or memory: a user who bounds memory waits too."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class Appended:
    """A blocked record was appended to a batch."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class Delivered:
    """Records of one batch are in the log, at consecutive offsets from base_offset.

    base_offset: -1 if the broker did not report it (acks=0, or a duplicate batch).
    log_append_time: the broker's timestamp for all of them, -1 if each keeps its own: `timestamps`.
    """

    topic: str
    partition: int
    tokens: list[Hashable]
    timestamps: list[int]
    base_offset: int
    log_append_time: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Records that were not delivered, or not known to be."""

    topic: str
    partition: int
    tokens: list[Hashable]
    failure: Failure


@dataclass(frozen=True, slots=True)
class Flushed:
    """All records before a Flush have their result."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class ProducerClosed:
    """All accepted records have their result."""


@dataclass(frozen=True, slots=True)
class TransactionDone:
    """What a TransactionEvent wanted is done."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class TransactionFailed:
    """What a TransactionEvent wanted failed.

    fatal: the producer can have no more transactions; otherwise this one can be aborted.
    """

    token: Hashable
    failure: Failure
    fatal: bool


TransactionEffect = TransactionDone | TransactionFailed
UserEffect = Blocked | Appended | Delivered | Failed | Flushed | ProducerClosed | TransactionEffect

ProducerEvent = UserEvent | OwnerEvent
ProducerEffect = UserEffect | OwnerEffect
