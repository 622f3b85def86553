"""LeaveGroup: removes members and rebalances.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   request +members -member_id; response +members │ several at once
v4   flexible
v5   request +reason
"""

from __future__ import annotations

from typing import Final

from ...messages.leave_group_request import LeaveGroupRequest
from ...messages.leave_group_response import LeaveGroupResponse, MemberResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import classic_request
from ..groups.requests import Leave
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

SEVERAL_FROM: Final = 3


def handle(
    broker: Broker, request: Request, body: LeaveGroupRequest, _connection: Connection, now: float
) -> LeaveGroupResponse | Outcome:
    """Pass it to the group."""
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    several = request.version >= SEVERAL_FROM
    members: tuple[tuple[str, str | None], ...] = ((body.member_id, None),)
    if several:
        members = tuple((each.member_id, each.group_instance_id) for each in body.members)
    if not classic_request(coordinator, body.group_id, Leave(request.reply_to, members), now):
        error = ErrorCode.UNKNOWN_MEMBER_ID
        return _each(body, error) if several else error_response(body, error)
    return DELAYED


def _each(body: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=error,
            )
            for each in body.members
        ]
    )


def error_response(_body: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """Return a response with the error."""
    return LeaveGroupResponse(error_code=error)
