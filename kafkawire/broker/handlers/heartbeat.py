"""Heartbeat: renews the session of a member, and reports rebalances to it.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   request +group_instance_id
v4   flexible
"""

from __future__ import annotations

from ...messages.heartbeat_request import HeartbeatRequest
from ...messages.heartbeat_response import HeartbeatResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import classic_request
from ..groups.requests import Heartbeat
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request


def handle(
    broker: Broker, request: Request, body: HeartbeatRequest, _connection: Connection, now: float
) -> HeartbeatResponse | Outcome:
    """Pass it to the group."""
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    group_request = Heartbeat(
        request.reply_to, body.member_id, body.generation_id, body.group_instance_id
    )
    if not classic_request(coordinator, body.group_id, group_request, now):
        return error_response(body, ErrorCode.UNKNOWN_MEMBER_ID)
    return DELAYED


def error_response(_body: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    """Return a response with the error."""
    return HeartbeatResponse(error_code=error)
