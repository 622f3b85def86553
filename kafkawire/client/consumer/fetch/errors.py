"""Decides how the fetcher handles each error of a partition.

Errors that are not in the table are reported to the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....protocol.error_code import ErrorCode


class FetchError(Enum):
    """How to handle the error of a partition."""

    REFRESH_METADATA = "update the metadata, then fetch again"
    RETRY = "fetch again after a backoff"
    OUT_OF_RANGE = "reset the position, or report the error"
    FAIL = "report the error to the user"


_E = ErrorCode

FETCH_ERRORS: Final[Mapping[ErrorCode, FetchError]] = {
    _E.OFFSET_OUT_OF_RANGE: FetchError.OUT_OF_RANGE,
    _E.NOT_LEADER_OR_FOLLOWER: FetchError.REFRESH_METADATA,
    _E.LEADER_NOT_AVAILABLE: FetchError.REFRESH_METADATA,
    _E.REPLICA_NOT_AVAILABLE: FetchError.REFRESH_METADATA,
    _E.KAFKA_STORAGE_ERROR: FetchError.REFRESH_METADATA,
    _E.FENCED_LEADER_EPOCH: FetchError.REFRESH_METADATA,
    _E.UNKNOWN_LEADER_EPOCH: FetchError.REFRESH_METADATA,
    _E.UNKNOWN_TOPIC_OR_PARTITION: FetchError.REFRESH_METADATA,
    _E.UNKNOWN_TOPIC_ID: FetchError.REFRESH_METADATA,
    _E.INCONSISTENT_TOPIC_ID: FetchError.REFRESH_METADATA,
    _E.OFFSET_NOT_AVAILABLE: FetchError.RETRY,
    _E.OFFSET_MOVED_TO_TIERED_STORAGE: FetchError.RETRY,
    _E.UNKNOWN_SERVER_ERROR: FetchError.RETRY,
    _E.FETCH_SESSION_ID_NOT_FOUND: FetchError.RETRY,
    _E.INVALID_FETCH_SESSION_EPOCH: FetchError.RETRY,
    _E.FETCH_SESSION_TOPIC_ID_ERROR: FetchError.RETRY,
}
"""Error of a partition -> how to handle it; any other is FAIL."""

SESSION_ERRORS: Final = frozenset(
    {
        _E.FETCH_SESSION_ID_NOT_FOUND,
        _E.INVALID_FETCH_SESSION_EPOCH,
        _E.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a response after which a full fetch is sent at once."""


def fetch_error(code: int) -> FetchError:
    """Return how to handle an error; unknown codes are FAIL."""
    by_code = {int(each): action for each, action in FETCH_ERRORS.items()}
    return by_code.get(code, FetchError.FAIL)
