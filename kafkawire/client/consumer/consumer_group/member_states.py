"""States, events and effects of a member of a group with `group.protocol=consumer`.

Events say what happened, effects say what to do; both are values. Those that members of
classic groups have, too, are in `group.member_states`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ...requests import ForgetCoordinator, RequestMetadataUpdate, SendRequest
from ..failures import ConsumerError
from ..group.member_states import (
    Busy,
    GroupRefused,
    HeartbeatDue,
    JoinWanted,
    LeaveWanted,
    Left,
    PartitionsLost,
    Polled,
    PollExpired,
    Prepare,
    Prepared,
    RetryDue,
)
from ..group.requests import Identity
from ..partitions import TopicPartition
from .heartbeats import MemberFields
from .recovery import Recovery


class MemberState(Enum):
    """How far a member is in its group."""

    UNJOINED = "Unjoined"
    REJOIN_NEEDED = "RejoinNeeded"
    PREPARING = "Preparing"
    JOINING = "Joining"
    RECONCILING = "Reconciling"
    ACKNOWLEDGING = "Acknowledging"
    STABLE = "Stable"
    FAILED = "Failed"


S = MemberState

_OUT: Final = frozenset({S.REJOIN_NEEDED, S.UNJOINED, S.FAILED})

# fmt: off
LEGAL: Final[Mapping[MemberState, frozenset[MemberState]]] = {
    S.UNJOINED:      frozenset({S.REJOIN_NEEDED}),
    S.REJOIN_NEEDED: frozenset({S.PREPARING, S.UNJOINED}),
    S.PREPARING:     frozenset({S.JOINING, S.UNJOINED}),
    S.JOINING:       _OUT | {S.RECONCILING},
    S.RECONCILING:   _OUT | {S.ACKNOWLEDGING, S.STABLE},
    S.ACKNOWLEDGING: _OUT | {S.RECONCILING, S.STABLE},
    S.STABLE:        _OUT | {S.RECONCILING, S.ACKNOWLEDGING},
    S.FAILED:        frozenset({S.REJOIN_NEEDED, S.UNJOINED}),
}
"""State -> the states that may follow it."""
# fmt: on


# Events, beside those of classic groups.


@dataclass(frozen=True, slots=True)
class HeartbeatResponded:
    """A heartbeat succeeded. fields: what it has told the coordinator."""

    response: ConsumerGroupHeartbeatResponse
    fields: MemberFields


@dataclass(frozen=True, slots=True)
class Refused:
    """A heartbeat failed. action: how to recover. lost: only its response may have been lost."""

    action: Recovery
    error: ConsumerError
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Partitions were revoked, or all of the assignment is applied (`complete`).

    owned: the partitions that this member has now.
    """

    owned: frozenset[TopicPartition]
    complete: bool


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """The metadata has changed, perhaps with topic ids that were unknown."""


MemberEvent = (
    JoinWanted
    | Polled
    | Busy
    | Prepared
    | HeartbeatResponded
    | Refused
    | Reconciled
    | MetadataUpdated
    | HeartbeatDue
    | PollExpired
    | RetryDue
    | LeaveWanted
)
Deadline = HeartbeatDue | PollExpired | RetryDue
"""The events that time brings."""


# Effects, beside requests and those of classic groups.


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Apply the assignment: revoke what is not in it, then add the rest; Reconciled must follow."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MemberEpochChanged:
    """The identity of later commits and lookups; outside of the group that of no member."""

    identity: Identity


MemberEffect = (
    SendRequest
    | ForgetCoordinator
    | RequestMetadataUpdate
    | Prepare
    | Reconcile
    | MemberEpochChanged
    | PartitionsLost
    | GroupRefused
    | Left
)
