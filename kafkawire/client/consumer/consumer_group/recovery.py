"""Decides how a member recovers from each error of a heartbeat.

Errors that are not in the table are fatal. Temporary errors are retried; a member that its
coordinator has removed gives up its partitions before it joins again.

    error ─▶ Recovery
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....protocol.error_code import ErrorCode


class Recovery(Enum):
    """How to recover from an error."""

    RETRY = "send all fields again after a backoff"
    FIND_COORDINATOR = "find the coordinator, then retry"
    REJOIN = "the partitions are lost: join with the same member id and epoch 0"
    WAIT_FOR_RELEASE = "retry while the instance id may be held by this member itself"
    FATAL = "fail, and report the error to the user"


_R, _E = Recovery, ErrorCode

# fmt: off
HEARTBEAT: Final[Mapping[ErrorCode, Recovery]] = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: _R.RETRY,
    _E.REQUEST_TIMED_OUT:            _R.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE:    _R.FIND_COORDINATOR,
    _E.NOT_COORDINATOR:              _R.FIND_COORDINATOR,
    _E.UNKNOWN_MEMBER_ID:            _R.REJOIN,
    _E.FENCED_MEMBER_EPOCH:          _R.REJOIN,
}
"""Error of a heartbeat -> recovery, in consumer groups and in share groups."""

RECOVERY: Final[Mapping[ErrorCode, Recovery]] = {
    **HEARTBEAT,
    _E.GROUP_ID_NOT_FOUND:           _R.REJOIN,
    _E.UNRELEASED_INSTANCE_ID:       _R.WAIT_FOR_RELEASE,
}
"""Error -> recovery; any other error is FATAL."""

OF_JOIN: Final[Mapping[ErrorCode, Recovery]] = {
    **RECOVERY,
    _E.GROUP_ID_NOT_FOUND:           _R.FATAL,  # the group is of another type
}
"""The same for a heartbeat that joins."""

ADVICE: Final[Mapping[ErrorCode, str]] = {
    _E.UNSUPPORTED_VERSION:
        "group.protocol=consumer needs Apache Kafka 4.0 or newer with the feature group.version 1: "
        "upgrade the feature (kafka-features.sh upgrade --feature group.version=1), or set "
        "group.protocol=classic",
    _E.GROUP_ID_NOT_FOUND:
        "a group of another type has this group.id: set another one, or "
        "group.protocol=classic if it is such a group",
    _E.UNRELEASED_INSTANCE_ID:
        "another member has this group.instance.id: close it, or wait until its session ends",
    _E.FENCED_INSTANCE_ID:
        "another member has taken this group.instance.id",
    _E.INVALID_REGULAR_EXPRESSION:
        "the broker matches patterns in RE2's syntax",
    _E.UNSUPPORTED_ASSIGNOR:
        "set group.remote.assignor to an assignor of the broker, or leave it out",
}
"""Error -> what to do."""
# fmt: on


def recovery(code: int, *, joining: bool) -> Recovery:
    """Return how to recover from an error. joining: whether the member has no epoch yet."""
    return listed(OF_JOIN if joining else RECOVERY, code)


def listed(table: Mapping[ErrorCode, Recovery], code: int) -> Recovery:
    """Return how to recover from an error by a table; FATAL if the table lacks it."""
    rows = {int(each): action for each, action in table.items()}
    return rows.get(code, Recovery.FATAL)
