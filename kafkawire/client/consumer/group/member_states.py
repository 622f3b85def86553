"""States, events and effects of a member of a classic consumer group.

Events say what happened, effects say what to do; both are values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ....messages.api_key import ApiKey
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ...requests import ForgetCoordinator, SendRequest
from ..assignors import Assignments, Assignor, Member
from ..failures import ConsumerError
from ..partitions import TopicPartition
from .recovery import Recovery
from .requests import JoinMetadata


class MemberState(Enum):
    """How far a member has joined its group."""

    UNJOINED = "Unjoined"
    REJOIN_NEEDED = "RejoinNeeded"
    PREPARING = "Preparing"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    FAILED = "Failed"


S = MemberState

_BACK: Final = frozenset({S.REJOIN_NEEDED, S.UNJOINED, S.FAILED})

# fmt: off
LEGAL: Final[Mapping[MemberState, frozenset[MemberState]]] = {
    S.UNJOINED:             frozenset({S.REJOIN_NEEDED}),
    S.REJOIN_NEEDED:        frozenset({S.PREPARING, S.REJOIN_NEEDED, S.UNJOINED, S.FAILED}),
    S.PREPARING:            _BACK | {S.PREPARING_REBALANCE},
    S.PREPARING_REBALANCE:  _BACK | {S.COMPLETING_REBALANCE},
    S.COMPLETING_REBALANCE: _BACK | {S.STABLE},
    S.STABLE:               _BACK,
    S.FAILED:               frozenset({S.REJOIN_NEEDED, S.UNJOINED}),
}
"""State -> the states that may follow it."""
# fmt: on


# Events.


@dataclass(frozen=True, slots=True)
class JoinWanted:
    """The subscription is new or has changed, or its topics have."""

    reason: str


@dataclass(frozen=True, slots=True)
class Polled:
    """The user is waiting for records."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The user has left the poll: max.poll.interval.ms runs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Offsets are committed and partitions revoked: ready to join."""

    join_metadata: JoinMetadata


@dataclass(frozen=True, slots=True)
class Joined:
    """JoinGroup succeeded: the member is in the next generation."""

    response: JoinGroupResponse


@dataclass(frozen=True, slots=True)
class AssignmentsComputed:
    """The leader has computed the assignments."""

    generation_id: int
    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Synced:
    """SyncGroup succeeded: the assignment has arrived."""

    response: SyncGroupResponse


@dataclass(frozen=True, slots=True)
class HeartbeatResponded:
    """Heartbeat succeeded."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request failed. action: how to recover. member_id: the one in a JoinGroup response."""

    api: ApiKey
    action: Recovery
    error: ConsumerError
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class HeartbeatDue:
    """A heartbeat is due (heartbeat.interval.ms)."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """No heartbeat response for session.timeout.ms: the coordinator may be unavailable."""


@dataclass(frozen=True, slots=True)
class PollExpired:
    """The user has not polled for max.poll.interval.ms."""


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The backoff after a failure is over."""


@dataclass(frozen=True, slots=True)
class LeaveWanted:
    """The user wants to leave the group."""

    reason: str


MemberEvent = (
    JoinWanted
    | Polled
    | Busy
    | Prepared
    | Joined
    | AssignmentsComputed
    | Synced
    | HeartbeatResponded
    | Refused
    | HeartbeatDue
    | SessionExpired
    | PollExpired
    | RetryDue
    | LeaveWanted
)
Deadline = HeartbeatDue | SessionExpired | PollExpired | RetryDue
"""The events that time brings."""


# Effects, beside requests.


@dataclass(frozen=True, slots=True)
class Prepare:
    """Commit offsets and revoke partitions; Prepared must follow."""


@dataclass(frozen=True, slots=True)
class ComputeAssignments:
    """Compute assignments, as the group's leader; AssignmentsComputed must follow."""

    generation_id: int
    assignor: Assignor
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """The assignment of this generation; owned partitions that are missing must be revoked."""

    generation_id: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """All partitions are lost: drop them without committing."""

    reason: str


@dataclass(frozen=True, slots=True)
class GroupRefused:
    """An error for the user."""

    error: ConsumerError


@dataclass(frozen=True, slots=True)
class Left:
    """The member has left the group, as far as it can know."""


MemberEffect = (
    SendRequest
    | ForgetCoordinator
    | Prepare
    | ComputeAssignments
    | PartitionsAssigned
    | PartitionsLost
    | GroupRefused
    | Left
)
