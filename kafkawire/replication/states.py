"""The states of a replica on its broker, and of the ISR at the leader, as tables.

A state changes through these tables alone; what they do not list is an error of the caller.
docs/internals/cluster.md draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ReplicaState(Enum):
    """What a replica does."""

    LEADER = "Leader"
    NO_LEADER = "NoLeader"
    FETCHING = "Fetching"
    DELAYED = "Delayed"
    OUT_OF_RANGE = "OutOfRange"
    FENCED = "Fenced"
    OFFLINE = "Offline"
    STOPPED = "Stopped"


class Trigger(Enum):
    """Why a replica's state changes."""

    BECAME_LEADER = "becomes leader"
    BECAME_FOLLOWER = "becomes follower"
    LOST_LEADER = "partition has no leader"
    FETCH_FAILED = "error or disconnect"
    BACKOFF_OVER = "backoff is over"
    LEFT_RANGE = "OFFSET_OUT_OF_RANGE"
    FOUND_RANGE = "log truncated or restarted"
    OLD_EPOCH = "FENCED_LEADER_EPOCH"
    DIRECTORY_FAILED = "log directory fails"
    REMOVED = "replica removed"


R, T = ReplicaState, Trigger
FOLLOWING: Final = (R.FETCHING, R.DELAYED, R.OUT_OF_RANGE, R.FENCED)
HOSTED: Final = (R.LEADER, R.NO_LEADER, *FOLLOWING)

REPLICA_TRANSITIONS: Final[Mapping[tuple[ReplicaState, Trigger], ReplicaState]] = {
    **{(state, T.BECAME_LEADER): R.LEADER for state in HOSTED},
    **{(state, T.BECAME_FOLLOWER): R.FETCHING for state in HOSTED},
    **{(state, T.LOST_LEADER): R.NO_LEADER for state in HOSTED},
    **{(state, T.DIRECTORY_FAILED): R.OFFLINE for state in HOSTED},
    **{(state, T.REMOVED): R.STOPPED for state in (*HOSTED, R.OFFLINE)},
    (R.FETCHING, T.FETCH_FAILED): R.DELAYED,
    (R.FETCHING, T.LEFT_RANGE): R.OUT_OF_RANGE,
    (R.FETCHING, T.OLD_EPOCH): R.FENCED,
    (R.DELAYED, T.BACKOFF_OVER): R.FETCHING,
    (R.OUT_OF_RANGE, T.FOUND_RANGE): R.FETCHING,
    (R.OUT_OF_RANGE, T.FETCH_FAILED): R.DELAYED,
    (R.OUT_OF_RANGE, T.OLD_EPOCH): R.FENCED,
}


class IsrState(Enum):
    """Whether the leader waits for the controller (KIP-497)."""

    COMMITTED = "Committed"
    PENDING_EXPAND = "PendingExpand"
    PENDING_SHRINK = "PendingShrink"


class IsrTrigger(Enum):
    """Why the state of an ISR changes."""

    CAUGHT_UP = "follower reached the high watermark and the epoch's start"
    LAGGING = "follower lags for replica.lag.time.max.ms"
    ACCEPTED = "AlterPartition accepted"
    REFUSED = "INELIGIBLE_REPLICA or OPERATION_NOT_ATTEMPTED"
    METADATA = "newer partition epoch in the metadata"


S, C = IsrState, IsrTrigger
PENDING: Final = (S.PENDING_EXPAND, S.PENDING_SHRINK)

ISR_TRANSITIONS: Final[Mapping[tuple[IsrState, IsrTrigger], IsrState]] = {
    (S.COMMITTED, C.CAUGHT_UP): S.PENDING_EXPAND,
    (S.COMMITTED, C.LAGGING): S.PENDING_SHRINK,
    **{(state, C.ACCEPTED): S.COMMITTED for state in PENDING},
    **{(state, C.REFUSED): S.COMMITTED for state in PENDING},
    **{(state, C.METADATA): S.COMMITTED for state in S},
}
