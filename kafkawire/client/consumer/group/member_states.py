"""What happens to a member of a classic group, and what it wants done about it.

Law: events are what happened, effects are what to do; both are values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ....messages.api_key import ApiKey
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ..assignors import Assignments, Assignor, Member
from ..failures import ConsumerError
from ..partitions import TopicPartition
from .recovery import Recovery
from .requests import Offer


class MemberState(Enum):
    """Where a member is on its way into the group."""

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
    """There is a subscription, or it changed, or its topics did."""

    reason: str


@dataclass(frozen=True, slots=True)
class Polled:
    """The user is waiting for records."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The user is doing something else: the poll interval runs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What had to be committed and given up is."""

    offer: Offer


@dataclass(frozen=True, slots=True)
class Joined:
    """We are in the next generation."""

    response: JoinGroupResponse


@dataclass(frozen=True, slots=True)
class AssignmentsComputed:
    """The leader knows who gets what."""

    generation_id: int
    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Synced:
    """Our assignment is here."""

    response: SyncGroupResponse


@dataclass(frozen=True, slots=True)
class HeartbeatResponded:
    """The coordinator knows us."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer, or the lack of one, calls for something; member_id: the one that came with it."""

    api: ApiKey
    what: Recovery
    error: ConsumerError
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class HeartbeatDue:
    pass


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """No heartbeat was answered for a session timeout: the coordinator may be gone."""


@dataclass(frozen=True, slots=True)
class PollExpired:
    """The user has not polled for max.poll.interval.ms."""


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The backoff after a failure is over."""


@dataclass(frozen=True, slots=True)
class LeaveWanted:
    """The user wants to be out of the group."""

    reason: str


EVENTS: Final = (
    JoinWanted,
    Polled,
    Busy,
    Prepared,
    Joined,
    AssignmentsComputed,
    Synced,
    HeartbeatResponded,
    Refused,
    HeartbeatDue,
    SessionExpired,
    PollExpired,
    RetryDue,
    LeaveWanted,
)

TABLE: Final = """
                     Unjoined Rejoin   Preparing Joining  Syncing  Stable   Failed
JoinWanted           want     why      why       later    later    want     want
Polled               here     polled   here      here     here     here     repolled
Busy                 away     busy     busy      busy     busy     busy     away
Prepared             -        -        prepared  -        -        -        -
Joined               -        -        -         joined   -        -        -
AssignmentsComputed  -        -        -         -        computed -        -
Synced               -        -        -         -        synced   -        -
HeartbeatResponded   -        known    known     -        known    known    -
Refused              -        refused  refused   refused  refused  refused  -
HeartbeatDue         -        beat     beat      -        beat     beat     -
SessionExpired       -        silent   silent    -        silent   silent   -
PollExpired          -        expired  expired   expired  expired  expired  -
RetryDue             -        try      -         -        -        -        -
LeaveWanted          leave    leave    leave     leave    leave    leave    leave
"""
"""Event x state -> method; - is nothing to do. Columns are the states in their own order."""


# Effects, beside requests.


@dataclass(frozen=True, slots=True)
class Prepare:
    """Commit what was read, give up what must be given up, then say Prepared."""


@dataclass(frozen=True, slots=True)
class ComputeAssignments:
    """We lead: divide the topics among the members, then say AssignmentsComputed."""

    generation_id: int
    assignor: Assignor
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """Ours in this generation; what was ours and is not here is to be given up."""

    generation_id: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """No longer ours: let go without committing."""

    reason: str


@dataclass(frozen=True, slots=True)
class GroupRefused:
    """The user must be told."""

    error: ConsumerError


@dataclass(frozen=True, slots=True)
class Left:
    """We are out of the group, as far as we can know."""
