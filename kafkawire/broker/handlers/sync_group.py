"""SyncGroup: a member requests its assignment; the leader sends those of all members.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   request +group_instance_id
v4   flexible
v5   request +protocol_type +protocol_name; response +protocol_type +protocol_name
"""

from __future__ import annotations

from typing import Final

from ...messages.sync_group_request import SyncGroupRequest
from ...messages.sync_group_response import SyncGroupResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import classic_request
from ..groups.requests import Sync
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

PROTOCOL_FROM: Final = 5


def handle(
    broker: Broker, request: Request, body: SyncGroupRequest, _connection: Connection, now: float
) -> SyncGroupResponse | Outcome:
    """Pass it to the group, which responds when the leader has sent the assignments."""
    if request.version >= PROTOCOL_FROM and None in (body.protocol_type, body.protocol_name):
        return error_response(body, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    group_request = Sync(
        request.reply_to,
        body.member_id,
        body.generation_id,
        body.group_instance_id,
        {each.member_id: each.assignment for each in body.assignments},
        body.protocol_type,
        body.protocol_name,
    )
    if not classic_request(coordinator, body.group_id, group_request, now):
        return error_response(body, ErrorCode.UNKNOWN_MEMBER_ID)
    return DELAYED


def error_response(_body: SyncGroupRequest, error: ErrorCode) -> SyncGroupResponse:
    """Return a response with the error."""
    return SyncGroupResponse(error_code=error)
