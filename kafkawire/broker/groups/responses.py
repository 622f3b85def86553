"""What groups answer, as the messages of each version.

Law: an answer depends on the version of its request only in what that version has no place for.
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
from .requests import HeartbeatResult, Joined, Left, Synced

NULL_PROTOCOL_FROM: Final = 7
STATIC_FROM: Final = 5
SKIP_FROM: Final = 9
MEMBERS_FROM: Final = 3


def message(answer: Joined | Synced | HeartbeatResult | Left, request: Request) -> Message:
    """Make the response to a request."""
    match answer:
        case Joined():
            return _joined(answer, request.version)
        case Synced():
            return SyncGroupResponse(
                error_code=answer.error,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name,
                assignment=answer.assignment,
            )
        case HeartbeatResult():
            return HeartbeatResponse(error_code=answer.error)
        case Left():
            return _left(answer, request)


def _joined(answer: Joined, version: int) -> JoinGroupResponse:
    name = answer.protocol_name
    return JoinGroupResponse(
        error_code=answer.error,
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=(name or "") if version < NULL_PROTOCOL_FROM else name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment and version >= SKIP_FROM,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member_id,
                group_instance_id=instance if version >= STATIC_FROM else None,
                metadata=metadata,
            )
            for member_id, instance, metadata in answer.members
        ],
    )


def _left(answer: Left, request: Request) -> LeaveGroupResponse:
    body = request.body
    assert isinstance(body, LeaveGroupRequest)
    if request.version < MEMBERS_FROM:
        error = answer.members[0] if answer.members else answer.error
        return LeaveGroupResponse(error_code=error)
    if answer.error:
        return LeaveGroupResponse(error_code=answer.error)
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=error,
            )
            for each, error in zip(body.members, answer.members, strict=True)
        ],
    )
