"""Turns the coordinator's responses into events of the membership.

Every response, and every missing response, is exactly one event.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from ....messages.api_key import ApiKey
from ....messages.heartbeat_response import HeartbeatResponse
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ....protocol.error_code import ErrorCode, error_of
from ...requests import NoResponse, ResponseReceived
from ..failures import GroupFailed
from .member_states import HeartbeatResponded, Joined, Refused, Synced
from .recovery import Recovery, recovery

ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group is of another type, as a share group, or its "
    "members have no assignor in common: set another group.id or partition.assignment.strategy",
}
"""Error code -> what to look at or change."""


def read_response(
    event: ResponseReceived | NoResponse, group_id: str, protocols: Container[str]
) -> Joined | Synced | HeartbeatResponded | Refused:
    """Read the response to a JoinGroup, SyncGroup or Heartbeat; protocols: those in the request."""
    api = event.request.api
    if isinstance(event, NoResponse):
        action = Recovery.RETRY if event.retriable else Recovery.FATAL
        reason = f"{api.name}: {event.reason.value} {event.detail}".rstrip()
        return Refused(api, action, GroupFailed(reason, event.code))
    message = event.message
    assert isinstance(message, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse)
    if message.error_code != ErrorCode.NONE:
        member_id = message.member_id if isinstance(message, JoinGroupResponse) else ""
        code = error_of(message.error_code)
        what = f"{api.name} of group {group_id!r} failed"
        error = GroupFailed(f"{what}: {ADVICE[code]}" if code in ADVICE else what, code)
        return Refused(api, recovery(api, message.error_code), error, member_id)
    if isinstance(message, SyncGroupResponse):
        return Synced(message)
    if isinstance(message, HeartbeatResponse):
        return HeartbeatResponded()
    if (message.protocol_name or "") not in protocols:
        error = GroupFailed(f"the group uses the unknown assignor {message.protocol_name!r}")
        return Refused(ApiKey.JOIN_GROUP, Recovery.FATAL, error)
    return Joined(message)
