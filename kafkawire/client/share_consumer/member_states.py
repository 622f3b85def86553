"""States, events and effects of a member of a share group.

Events say what happened, effects say what to do; both are values. Those that members of
consumer groups have, too, are in `consumer.group.member_states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ..consumer.consumer_group.recovery import HEARTBEAT, Recovery, listed
from ..consumer.failures import GroupFailed
from ..consumer.group.member_states import (
    Busy,
    GroupRefused,
    HeartbeatDue,
    Left,
    Polled,
    PollExpired,
)
from ..requests import ForgetCoordinator, SendRequest


class MemberState(Enum):
    """How far a member has joined its share group."""

    UNSUBSCRIBED = "Unsubscribed"
    JOINING = "Joining"
    STABLE = "Stable"
    STALE = "Stale"
    LEAVING = "Leaving"
    FATAL = "Fatal"


S = MemberState

# fmt: off
LEGAL: Final[Mapping[MemberState, frozenset[MemberState]]] = {
    S.UNSUBSCRIBED: frozenset({S.JOINING}),
    S.JOINING:      frozenset({S.STABLE, S.JOINING, S.STALE, S.LEAVING, S.FATAL}),
    S.STABLE:       frozenset({S.JOINING, S.STALE, S.LEAVING, S.FATAL}),
    S.STALE:        frozenset({S.JOINING, S.UNSUBSCRIBED}),
    S.LEAVING:      frozenset({S.UNSUBSCRIBED, S.JOINING}),
    S.FATAL:        frozenset({S.JOINING, S.UNSUBSCRIBED}),
}
"""State -> the states that may follow it."""
# fmt: on


def recovery(code: int) -> Recovery:
    """Return how to recover from an error of a heartbeat."""
    return listed(HEARTBEAT, code)


# Events, beside those of all members.


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """The user subscribes to these topics."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class HeartbeatResponded:
    """A heartbeat succeeded."""

    response: ShareGroupHeartbeatResponse


@dataclass(frozen=True, slots=True)
class Refused:
    """A heartbeat failed. action: how to recover."""

    action: Recovery
    error: GroupFailed


@dataclass(frozen=True, slots=True)
class LeaveWanted:
    """The user wants to leave the group."""


MemberEvent = (
    SubscriptionChanged
    | Polled
    | Busy
    | HeartbeatResponded
    | Refused
    | HeartbeatDue
    | PollExpired
    | LeaveWanted
)
Deadline = HeartbeatDue | PollExpired
"""The events that time brings."""


# Effects, beside requests and those of all members.


@dataclass(frozen=True, slots=True)
class AssignmentChanged:
    """The partitions to fetch from: topic ids and partition numbers."""

    partitions: frozenset[tuple[bytes, int]]


MemberEffect = SendRequest | ForgetCoordinator | AssignmentChanged | GroupRefused | Left
