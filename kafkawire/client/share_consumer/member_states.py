"""States, events and effects of a member of a share group.

Events say what happened, effects say what to do; both are values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from ...protocol.error_code import ErrorCode
from ..consumer.failures import GroupFailed
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


# Errors.


class Recovery(Enum):
    """How to recover from an error of a heartbeat."""

    RETRY = "send the heartbeat again after a backoff"
    FIND_COORDINATOR = "find the coordinator, then retry"
    REJOIN = "the assignment is lost: join with epoch 0"
    FATAL = "fail, and report the error to the user; the next poll joins again"


_R, _E = Recovery, ErrorCode

# fmt: off
RECOVERY: Final[Mapping[ErrorCode, Recovery]] = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: _R.RETRY,
    _E.REQUEST_TIMED_OUT:            _R.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE:    _R.FIND_COORDINATOR,
    _E.NOT_COORDINATOR:              _R.FIND_COORDINATOR,
    _E.UNKNOWN_MEMBER_ID:            _R.REJOIN,
    _E.FENCED_MEMBER_EPOCH:          _R.REJOIN,
}
"""Error -> recovery; any other error is FATAL."""
# fmt: on


def recovery(code: int) -> Recovery:
    """Return how to recover from an error."""
    listed = {int(each): action for each, action in RECOVERY.items()}
    return listed.get(code, Recovery.FATAL)


# Events.


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """The user subscribes to these topics."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Polled:
    """The user is waiting for records."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The user has left the poll: max.poll.interval.ms runs."""


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
class HeartbeatDue:
    """The interval between heartbeats, or the backoff after a failure, is over."""


@dataclass(frozen=True, slots=True)
class PollExpired:
    """The user has not polled for max.poll.interval.ms."""


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


# Effects, beside requests.


@dataclass(frozen=True, slots=True)
class AssignmentChanged:
    """The partitions to fetch from: topic ids and partition numbers."""

    partitions: frozenset[tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class GroupRefused:
    """An error for the user."""

    error: GroupFailed


@dataclass(frozen=True, slots=True)
class Left:
    """The member has left the group, as far as it can know."""


MemberEffect = SendRequest | ForgetCoordinator | AssignmentChanged | GroupRefused | Left
