"""Events and effects of a producer.

Law: each token of a Send returns in exactly one Delivered or Failed; Blocked and Appended mean
that the user is to wait in between.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.error_code import ErrorCode
from ...records import Headers
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
    """The user no longer waits for a Blocked record: drop it, without a result."""

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


UserEvent = Send | Cancel | Flush | CloseProducer | Abandon


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


UserEffect = Blocked | Appended | Delivered | Failed | Flushed | ProducerClosed

ProducerEvent = UserEvent | OwnerEvent
ProducerEffect = UserEffect | OwnerEffect
