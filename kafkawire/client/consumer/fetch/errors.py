"""What each error of a fetched partition calls for.

Law: every error has its place: those not in the table are for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....protocol.error_code import ErrorCode


class FetchError(Enum):
    """What an error of one partition calls for."""

    REFRESH = "look at the cluster again"
    AGAIN = "fetch again a little later"
    OUT_OF_RANGE = "reset the position, or tell the user"
    FAIL = "tell the user"


_E = ErrorCode

FETCH_ERRORS: Final[Mapping[ErrorCode, FetchError]] = {
    _E.OFFSET_OUT_OF_RANGE: FetchError.OUT_OF_RANGE,
    _E.NOT_LEADER_OR_FOLLOWER: FetchError.REFRESH,
    _E.LEADER_NOT_AVAILABLE: FetchError.REFRESH,
    _E.REPLICA_NOT_AVAILABLE: FetchError.REFRESH,
    _E.KAFKA_STORAGE_ERROR: FetchError.REFRESH,
    _E.FENCED_LEADER_EPOCH: FetchError.REFRESH,
    _E.UNKNOWN_LEADER_EPOCH: FetchError.REFRESH,
    _E.UNKNOWN_TOPIC_OR_PARTITION: FetchError.REFRESH,
    _E.UNKNOWN_TOPIC_ID: FetchError.REFRESH,
    _E.INCONSISTENT_TOPIC_ID: FetchError.REFRESH,
    _E.OFFSET_NOT_AVAILABLE: FetchError.AGAIN,
    _E.OFFSET_MOVED_TO_TIERED_STORAGE: FetchError.AGAIN,
    _E.UNKNOWN_SERVER_ERROR: FetchError.AGAIN,
    _E.FETCH_SESSION_ID_NOT_FOUND: FetchError.AGAIN,
    _E.INVALID_FETCH_SESSION_EPOCH: FetchError.AGAIN,
    _E.FETCH_SESSION_TOPIC_ID_ERROR: FetchError.AGAIN,
}
"""Error of a partition -> what to do; any other is FAIL."""

SESSION_ERRORS: Final = frozenset(
    {
        _E.FETCH_SESSION_ID_NOT_FOUND,
        _E.INVALID_FETCH_SESSION_EPOCH,
        _E.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a whole fetch after which everything is said anew, at once."""


def fetch_error(code: int) -> FetchError:
    """Say what an error calls for; one that nobody knows is FAIL."""
    known = {int(each): what for each, what in FETCH_ERRORS.items()}
    return known.get(code, FetchError.FAIL)
