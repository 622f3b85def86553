"""JoinGroup: a client joins a group, or rejoins it in a rebalance.

v0   the first
v1   request +rebalance_timeout_ms
v2   response +throttle_time_ms
v3   no new fields │ throttled after the response
v4   no new fields │ MEMBER_ID_REQUIRED (KIP-394)
v5   request +group_instance_id; response +group_instance_id │ static members (KIP-345)
v6   flexible
v7   response +protocol_type
v8   request +reason
v9   response +skip_assignment
"""

from __future__ import annotations

from typing import Final

from ...messages.join_group_request import JoinGroupRequest
from ...messages.join_group_response import JoinGroupResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.group_types import classic_request
from ..groups.requests import Join, Joined
from ..groups.responses import join_response
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request

E = ErrorCode
REBALANCE_TIMEOUT_FROM: Final = 1
ID_REQUIRED_FROM: Final = 4
SKIP_FROM: Final = 9


def handle(
    broker: Broker, request: Request, body: JoinGroupRequest, _connection: Connection, now: float
) -> JoinGroupResponse | Outcome:
    """Pass it to the group, which responds when the rebalance completes."""
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return _failed(request, body, coordinator)
    if not _is_valid_session_timeout(broker, body.session_timeout_ms):
        return _failed(request, body, E.INVALID_SESSION_TIMEOUT)
    if not body.member_id and not coordinator.may_create(body.group_id):
        return _failed(request, body, E.POLICY_VIOLATION)
    if not classic_request(coordinator, body.group_id, _group_request(request, body), now):
        return _failed(request, body, E.UNKNOWN_MEMBER_ID)
    return DELAYED


def _is_valid_session_timeout(broker: Broker, session_timeout_ms: int) -> bool:
    settings = broker.settings
    least = settings.number("group.min.session.timeout.ms")
    return least <= session_timeout_ms <= settings.number("group.max.session.timeout.ms")


def _group_request(request: Request, body: JoinGroupRequest) -> Join:
    session, rebalance = body.session_timeout_ms, body.rebalance_timeout_ms
    if request.version < REBALANCE_TIMEOUT_FROM:
        rebalance = session
    return Join(
        request.reply_to,
        body.member_id,
        body.group_instance_id,
        request.client_id or "",
        f"/{request.client_host}",
        session / 1000,
        rebalance / 1000,
        body.protocol_type,
        tuple((each.name, each.metadata) for each in body.protocols),
        requires_known_member_id=request.version >= ID_REQUIRED_FROM,
        supports_skip_assignment=request.version >= SKIP_FROM,
    )


def _failed(request: Request, body: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    return join_response(Joined(request.reply_to, error, body.member_id), request.version)


def error_response(body: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    """Return a response with the error."""
    return JoinGroupResponse(
        error_code=error, generation_id=-1, protocol_name="", member_id=body.member_id
    )
