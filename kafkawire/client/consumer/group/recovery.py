"""What a member does about each error its coordinator may answer with.

Law: every error has its place: those not in the table are fatal. What is lost is lost at once, what
is only late is tried again, and nobody takes part under an identity that the coordinator refused.

    request x error ─▶ Recovery
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....messages.api_key import ApiKey
from ....protocol.error_code import ErrorCode


class Recovery(Enum):
    """What an error calls for."""

    TAKE_ID = "take the member id that came with it, and join again at once"
    RETRY = "the same again, a little later"
    FIND = "look for the coordinator again, then the same again"
    REJOIN = "a rebalance has begun: join, as who we are"
    NEW_GENERATION = "what we had is lost: join, as who we are"
    NEW_MEMBER = "what we had is lost, and so is our name: join as somebody new"
    FATAL = "give up and tell the user"


_R, _E = Recovery, ErrorCode

# fmt: off
_COORDINATOR: Final = {
    _E.COORDINATOR_LOAD_IN_PROGRESS: _R.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE:    _R.FIND,
    _E.NOT_COORDINATOR:              _R.FIND,
    _E.REQUEST_TIMED_OUT:            _R.RETRY,
    _E.UNKNOWN_MEMBER_ID:            _R.NEW_MEMBER,
    _E.ILLEGAL_GENERATION:           _R.NEW_GENERATION,
}

RECOVERY: Final[Mapping[ApiKey, Mapping[ErrorCode, Recovery]]] = {
    ApiKey.JOIN_GROUP: _COORDINATOR | {
        _E.MEMBER_ID_REQUIRED:       _R.TAKE_ID,
        _E.REBALANCE_IN_PROGRESS:    _R.RETRY,
    },
    ApiKey.SYNC_GROUP: _COORDINATOR | {
        _E.REBALANCE_IN_PROGRESS:    _R.REJOIN,
    },
    ApiKey.HEARTBEAT: _COORDINATOR | {
        _E.REBALANCE_IN_PROGRESS:    _R.REJOIN,
    },
}
"""Request -> error -> what to do; any other error is FATAL."""
# fmt: on


def recovery(api: ApiKey, code: int) -> Recovery:
    """Say what an error calls for."""
    known = {int(each): what for each, what in RECOVERY[api].items()}
    return known.get(code, Recovery.FATAL)
