"""Describes the events of groups.

An event is derived from a message that shows it; what only a missing message would show is not
reported.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from ....protocol.error_code import ErrorCode
from ...exchanges.exchanges import Exchange
from ...exchanges.topic_ids import Topic
from ...rows import Row


class EventType(StrEnum):
    """Types of group events."""

    JOINED = "joined"
    """The member joined the group, or a new generation of it."""
    LEFT = "left"
    """The member left the group."""
    REMOVED = "removed"
    """The broker removed the member from the group."""
    REBALANCE_STARTED = "rebalance_started"
    """A request caused a rebalance, or a member noticed one whose cause is not in the capture."""
    REBALANCE_ENDED = "rebalance_ended"
    """Every member seen in the rebalance has its assignment; `duration_ns` is its duration."""
    ASSIGNED = "assigned"
    """The member received its partitions, or its tasks; `reason` says for what it waited."""
    REVOKED = "revoked"
    """The member has to release partitions or tasks (consumer and Streams groups)."""
    RELEASED = "released"
    """The member has released them; `duration_ns` is the time since it had to."""
    COMMITTED = "committed"
    """Offsets were committed."""
    FAILED = "failed"
    """The broker rejected a request of the group protocol."""


# names of members: on Python 3.11, to read one of an Enum class takes as long as a call
JOINED: Final = EventType.JOINED
ASSIGNED: Final = EventType.ASSIGNED
COMMITTED: Final = EventType.COMMITTED
FAILED: Final = EventType.FAILED
REBALANCE_STARTED: Final = EventType.REBALANCE_STARTED
REBALANCE_ENDED: Final = EventType.REBALANCE_ENDED


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
"""Error codes that mean that the broker does not know the member."""


class Tasks(NamedTuple):
    """Tasks of a member of a Streams group. type: `active`, `standby` or `warmup`."""

    type: str
    subtopology_id: str
    partitions: list[int]


class GroupEvent(NamedTuple):
    """One row of the `group_events` table, without its connection.

    row: the message that shows it; for the start of a rebalance, the request that caused it, if
    that is in the capture. client_id: of the member. generation: of classic groups; for other
    protocols, the member epoch. offsets: (topic, partition, offset, error code). noticed_ns: for
    the start of a rebalance, when a member first learned of it. tasks: of Streams groups.
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
    tasks: list[Tasks] | None = None
    offsets: list[tuple[Topic, int, int, int]] | None = None
    client_id: str | None = None
    noticed_ns: int | None = None

    def rebalance_ended(self, members: int, duration_ns: int) -> GroupEvent:
        """Make the event of the group, which shows in this one of a member."""
        return self._replace(
            type=REBALANCE_ENDED,
            member_id=None,
            group_instance_id=None,
            members=members,
            duration_ns=duration_ns,
        )


def error_event(event: GroupEvent, code: int) -> GroupEvent:
    """Make the event of an error response: the member was removed, or its request failed."""
    type = EventType.REMOVED if code in REMOVED else FAILED
    api = event.exchange.main_row.api_name
    reason = f"{api} failed with {ErrorCode.name_of(code)}"
    return event._replace(type=type, error_code=code, reason=reason)


def or_none(value: Any) -> str | None:
    """Return None for an empty string."""
    return value or None
