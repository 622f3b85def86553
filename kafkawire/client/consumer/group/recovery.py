"""Decides how a member recovers from each error of its coordinator.

Errors that are not in the table are fatal. Temporary errors are retried; a member never uses
an identity again that the coordinator has refused.

    request x error ─▶ Recovery
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode


class Recovery(Enum):
    """How to recover from an error."""

    TAKE_MEMBER_ID = "take the member id of the response, and join again at once"
    RETRY = "send the request again after a backoff"
    FIND_COORDINATOR = "find the coordinator, then retry"
    REJOIN = "a rebalance has begun: join with the same member id"
    NEW_GENERATION = "the assignment is lost: join with the same member id"
    NEW_MEMBER = "the assignment and the member id are lost: join as a new member"
    FATAL = "fail, and report the error to the user"


_R, _E = Recovery, ErrorCode

# fmt: off
_COORDINATOR: Final = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: _R.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE:    _R.FIND_COORDINATOR,
    _E.NOT_COORDINATOR:              _R.FIND_COORDINATOR,
    _E.REQUEST_TIMED_OUT:            _R.RETRY,
    _E.UNKNOWN_MEMBER_ID:            _R.NEW_MEMBER,
    _E.ILLEGAL_GENERATION:           _R.NEW_GENERATION,
}

RECOVERY: Final[Mapping[ApiKey, Mapping[ErrorCode, Recovery]]] = {
    ApiKey.JOIN_GROUP: _COORDINATOR | {
        _E.MEMBER_ID_REQUIRED:       _R.TAKE_MEMBER_ID,
        _E.REBALANCE_IN_PROGRESS:    _R.RETRY,
    },
    ApiKey.SYNC_GROUP: _COORDINATOR | {
        _E.REBALANCE_IN_PROGRESS:    _R.REJOIN,
    },
    ApiKey.HEARTBEAT: _COORDINATOR | {
        _E.REBALANCE_IN_PROGRESS:    _R.REJOIN,
    },
}
"""Request -> error -> recovery; any other error is FATAL."""
# fmt: on


def recovery(api: ApiKey, code: int) -> Recovery:
    """Return how to recover from an error."""
    by_code = {int(each): action for each, action in RECOVERY[api].items()}
    return by_code.get(code, Recovery.FATAL)
