"""What can happen to a group, and one happening as a value.

Law: a happening is told from a message that shows it; what only silence would show is not told.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from ....protocol.error_code import ErrorCode
from ...exchanges.exchanges import Exchange
from ...exchanges.topic_ids import Topic
from ...rows import Row


class EventType(StrEnum):
    """Kinds of happenings."""

    JOINED = "joined"
    """The broker took the member in, or took it into a new generation."""
    LEFT = "left"
    """The member said that it leaves."""
    REMOVED = "removed"
    """The broker no longer counts it as a member."""
    REBALANCE_STARTED = "rebalance_started"
    """A request caused a rebalance, or a member noticed one whose cause is not in the capture."""
    REBALANCE_ENDED = "rebalance_ended"
    """Every member seen in it has its assignment; `duration_ns` is how long it took."""
    ASSIGNED = "assigned"
    """The member was told its partitions."""
    COMMITTED = "committed"
    """Offsets were committed."""
    FAILED = "failed"
    """The broker refused a request of the group's protocol."""


class Protocol(StrEnum):
    """Group protocols."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


REMOVED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)
"""Error codes that tell a member that it is none."""


class GroupEvent(NamedTuple):
    """One row of the `group_events` table, but for where it was seen.

    row: the message that shows it; of the start of a rebalance the request that caused it, if that
    is in the capture. client_id: of the member. generation: of classic groups; of the others the
    member epoch. offsets: (topic, partition, offset, error code). noticed_ns: of the start of a
    rebalance: when a member first learnt of it.
    """

    exchange: Exchange
    row: Row
    protocol: Protocol
    group_id: str
    type: EventType
    member_id: str | None = None
    group_instance_id: str | None = None
    generation: int | None = None
    assignor: str | None = None
    members: int | None = None
    reason: str | None = None
    error_code: int | None = None
    duration_ns: int | None = None
    partitions: list[tuple[Topic, list[int]]] | None = None
    offsets: list[tuple[Topic, int, int, int]] | None = None
    client_id: str | None = None
    noticed_ns: int | None = None


def refused(about: GroupEvent, code: int) -> GroupEvent:
    """Say that the broker refused: the member is none, or something else is wrong."""
    what = EventType.REMOVED if code in REMOVED else EventType.FAILED
    api = about.exchange.told.api_name
    reason = f"{api} answered {ErrorCode.name_of(code)}"
    return about._replace(type=what, error_code=code, reason=reason)


def or_none(value: Any) -> str | None:
    """Take a text that may be empty for none."""
    return value or None
