"""What a producer is told by its user, and what it tells.

Law: each token of a Send comes back in exactly one Delivered or Failed; Parked and Placed only say
that the user should wait in between.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.error_code import ErrorCode
from ...records import Headers
from ..requests import Reason


class Send(NamedTuple):
    """A record to be sent.

    token: the user's name for it. partition: None leaves the choice to the partitioner.
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
class Withdraw:
    """The user no longer waits for a record that is Parked: forget it, without a result."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class Flush:
    """Send all that was told before, what is parked too, and say when each has its result."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """Take nothing more; say when all that was taken has its result."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give up on all that has no result yet."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why records were not delivered.

    code: the broker's error, NONE where it is not the broker's word. reason: why there is no
    answer, None where there was one. Where the reason is TIMED_OUT or DISCONNECTED the broker may
    have them all the same.
    """

    code: ErrorCode
    reason: Reason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Parked:
    """The record waits for metadata or for memory: a user who bounds memory waits too."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class Placed:
    """A parked record is in a batch now."""

    token: Hashable


@dataclass(frozen=True, slots=True)
class Delivered:
    """Records of one batch are in the log, the first at base_offset, the others behind it.

    base_offset: -1 where the broker did not say (acks=0, or a repeated batch). log_append_time:
    the broker's timestamp for all of them, -1 where each keeps its own.
    """

    topic: str
    partition: int
    tokens: list[Hashable]
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
    token: Hashable


@dataclass(frozen=True, slots=True)
class ProducerClosed:
    """All that was taken has its result."""
