"""What a coordinator's answer, or the lack of one, means to a member.

Law: every answer is exactly one event.
"""

from __future__ import annotations

from collections.abc import Container

from ....messages.api_key import ApiKey
from ....messages.heartbeat_response import HeartbeatResponse
from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ....protocol.error_code import ErrorCode
from ...requests import NoResponse, ResponseReceived
from ..failures import GroupFailed
from .member_states import HeartbeatResponded, Joined, Refused, Synced
from .recovery import Recovery, recovery


def read_answer(
    event: ResponseReceived | NoResponse, protocols: Container[str]
) -> Joined | Synced | HeartbeatResponded | Refused:
    """Read the answer to a JoinGroup, SyncGroup or Heartbeat; protocols: those that we offered."""
    api = event.request.api
    if isinstance(event, NoResponse):
        what = Recovery.RETRY if event.retriable else Recovery.FATAL
        why = f"{api.name}: {event.reason.value} {event.detail}".rstrip()
        return Refused(api, what, GroupFailed(why, event.code))
    message = event.message
    assert isinstance(message, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse)
    if message.error_code != ErrorCode.NONE:
        given = message.member_id if isinstance(message, JoinGroupResponse) else ""
        error = GroupFailed(f"the group's coordinator refused {api.name}", message.error_code)
        return Refused(api, recovery(api, message.error_code), error, given)
    if isinstance(message, SyncGroupResponse):
        return Synced(message)
    if isinstance(message, HeartbeatResponse):
        return HeartbeatResponded()
    if (message.protocol_name or "") not in protocols:
        error = GroupFailed(f"the group chose {message.protocol_name!r}, which we do not have")
        return Refused(ApiKey.JOIN_GROUP, Recovery.FATAL, error)
    return Joined(message)
