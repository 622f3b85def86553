"""The states of a classic group, their transitions, and the requests that each admits.

A state changes only as in `LEGAL`. `ADMISSION` is total: every state has an error for every
kind of request, NONE where the request's handler decides.

    EMPTY ─▶ PREPARING_REBALANCE ─▶ COMPLETING_REBALANCE ─▶ STABLE
               (joins delayed)         (syncs delayed)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....protocol import ErrorCode


class GroupState(Enum):
    """A state; its value is its name in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Kind(Enum):
    """The kind of a group request."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroups"
    DELETE_OFFSETS = "OffsetDelete"


S, K, E = GroupState, Kind, ErrorCode

LEGAL: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    S.EMPTY: frozenset({S.PREPARING_REBALANCE, S.DEAD}),
    S.PREPARING_REBALANCE: frozenset({S.COMPLETING_REBALANCE, S.EMPTY, S.DEAD}),
    S.COMPLETING_REBALANCE: frozenset({S.STABLE, S.PREPARING_REBALANCE, S.DEAD}),
    S.STABLE: frozenset({S.PREPARING_REBALANCE, S.DEAD}),
    S.DEAD: frozenset(),
}

_WITH_MEMBERS: Final[Mapping[Kind, ErrorCode]] = {
    K.JOIN: E.NONE,
    K.SYNC: E.NONE,
    K.HEARTBEAT: E.NONE,
    K.LEAVE: E.NONE,
    K.COMMIT: E.NONE,
    K.DELETE: E.NON_EMPTY_GROUP,
    K.DELETE_OFFSETS: E.NONE,
}
"""The errors in a group with members."""

_REBALANCING: Final = E.REBALANCE_IN_PROGRESS

ADMISSION: Final[Mapping[GroupState, Mapping[Kind, ErrorCode]]] = {
    S.EMPTY: {
        **_WITH_MEMBERS,
        K.SYNC: E.UNKNOWN_MEMBER_ID,
        K.HEARTBEAT: E.UNKNOWN_MEMBER_ID,
        K.DELETE: E.NONE,
    },
    S.PREPARING_REBALANCE: {**_WITH_MEMBERS, K.SYNC: _REBALANCING, K.HEARTBEAT: _REBALANCING},
    S.COMPLETING_REBALANCE: {**_WITH_MEMBERS, K.COMMIT: _REBALANCING},
    S.STABLE: _WITH_MEMBERS,
    S.DEAD: {
        **dict.fromkeys(K, E.COORDINATOR_NOT_AVAILABLE),
        K.DELETE: E.GROUP_ID_NOT_FOUND,
        K.DELETE_OFFSETS: E.GROUP_ID_NOT_FOUND,
    },
}
