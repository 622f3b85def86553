"""Decides how each error of a leader is handled.

Errors that are not in a table are reported to the user.

    ShareFetch: of the response ─▶ SESSION_ERRORS; of a partition ─▶ fetch again, or report
    acknowledgements: of a partition ─▶ send again, or report
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ...protocol.error_code import ErrorCode


class LeaderError(Enum):
    """How to handle the error of a partition, or of a whole response."""

    NEW_SESSION = "begin a new share session"
    REFRESH_METADATA = "update the metadata; fetch again, acknowledgements fail"
    RETRY = "send again after a backoff"
    FAIL = "report the error to the user"


_L, _E = LeaderError, ErrorCode

# fmt: off
LEADER_ERRORS: Final[Mapping[ErrorCode, LeaderError]] = {
    _E.SHARE_SESSION_NOT_FOUND:      _L.NEW_SESSION,
    _E.INVALID_SHARE_SESSION_EPOCH:  _L.NEW_SESSION,
    _E.SHARE_SESSION_LIMIT_REACHED:  _L.NEW_SESSION,
    _E.NOT_LEADER_OR_FOLLOWER:       _L.REFRESH_METADATA,
    _E.LEADER_NOT_AVAILABLE:         _L.REFRESH_METADATA,
    _E.REPLICA_NOT_AVAILABLE:        _L.REFRESH_METADATA,
    _E.KAFKA_STORAGE_ERROR:          _L.REFRESH_METADATA,
    _E.FENCED_LEADER_EPOCH:          _L.REFRESH_METADATA,
    _E.FENCED_STATE_EPOCH:           _L.REFRESH_METADATA,
    _E.UNKNOWN_LEADER_EPOCH:         _L.REFRESH_METADATA,
    _E.UNKNOWN_TOPIC_OR_PARTITION:   _L.REFRESH_METADATA,
    _E.UNKNOWN_TOPIC_ID:             _L.REFRESH_METADATA,
    _E.INCONSISTENT_TOPIC_ID:        _L.REFRESH_METADATA,
    _E.OFFSET_NOT_AVAILABLE:         _L.RETRY,
    _E.COORDINATOR_LOAD_IN_PROGRESS: _L.RETRY,
    _E.COORDINATOR_NOT_AVAILABLE:    _L.RETRY,
    _E.NOT_COORDINATOR:              _L.RETRY,
    _E.REQUEST_TIMED_OUT:            _L.RETRY,
    _E.UNKNOWN_SERVER_ERROR:         _L.RETRY,
}
"""Error -> how to handle it; any other is FAIL. The coordinators are those of the group's state."""
# fmt: on


def leader_error(code: int) -> LeaderError:
    """Return how to handle an error; unknown codes are FAIL."""
    listed = {int(each): action for each, action in LEADER_ERRORS.items()}
    return listed.get(code, LeaderError.FAIL)
