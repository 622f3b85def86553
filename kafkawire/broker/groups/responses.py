"""Builds the response messages of group requests.

A response depends on its version only in the fields that the version lacks.
"""

from __future__ import annotations

from typing import Final

from ...messages.heartbeat_response import HeartbeatResponse
from ...messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from ...messages.leave_group_request import LeaveGroupRequest
from ...messages.leave_group_response import LeaveGroupResponse, MemberResponse
from ...messages.sync_group_response import SyncGroupResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ..request import Request
from .requests import HeartbeatResult, Joined, Left, Response, Synced

NULL_PROTOCOL_FROM: Final = 7
STATIC_FROM: Final = 5
SKIP_FROM: Final = 9
MEMBERS_FROM: Final = 3


def message(result: Response, request: Request) -> Message:
    """Build the response message to a request."""
    match result:
        case Joined():
            return join_response(result, request.version)
        case Synced():
            return SyncGroupResponse(
                error_code=result.error,
                protocol_type=result.protocol_type,
                protocol_name=result.protocol_name,
                assignment=result.assignment,
            )
        case HeartbeatResult():
            return HeartbeatResponse(error_code=result.error)
        case Left():
            return _left(result, request)


def join_response(result: Joined, version: int) -> JoinGroupResponse:
    """Build the response to a JoinGroup."""
    name = result.protocol_name
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=(name or "") if version < NULL_PROTOCOL_FROM else name,
        leader=result.leader,
        skip_assignment=result.skip_assignment and version >= SKIP_FROM,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member_id,
                group_instance_id=instance if version >= STATIC_FROM else None,
                metadata=metadata,
            )
            for member_id, instance, metadata in result.members
        ],
    )


def _left(result: Left, request: Request) -> LeaveGroupResponse:
    body = request.body
    assert isinstance(body, LeaveGroupRequest)
    if request.version < MEMBERS_FROM:
        error = result.members[0] if result.members else result.error
        return LeaveGroupResponse(error_code=error)
    if result.error:
        return LeaveGroupResponse(error_code=result.error)
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=error,
            )
            for each, error in zip(body.members, result.members, strict=True)
        ],
    )
