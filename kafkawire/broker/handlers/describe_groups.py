"""DescribeGroups: returns the state, members and assignments of groups.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   request +include_authorized_operations; response +authorized_operations
v4   response +group_instance_id
v5   flexible
v6   response +error_message │ GROUP_ID_NOT_FOUND in place of Dead
"""

from __future__ import annotations

from typing import Final

from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.classic_groups.group import Group
from ..groups.classic_groups.states import GroupState
from ..groups.coordinator import Coordinator
from ..groups.group_types import described
from ..network.connection import Connection
from ..request import Outcome, Request
from ..security.operations import GROUP_OPERATIONS

E = ErrorCode
STATIC_FROM: Final = 4
NOT_FOUND_FROM: Final = 6


def handle(
    broker: Broker,
    request: Request,
    body: DescribeGroupsRequest,
    _connection: Connection,
    now: float,
) -> DescribeGroupsResponse | Outcome:
    """Describe each group, duplicates once; an unknown group is Dead."""
    groups, used = described(
        body.groups,
        broker.coordinator,
        lambda group_id, coordinator: _described(coordinator, group_id, request.version),
        GROUP_OPERATIONS if body.include_authorized_operations else None,
    )
    return broker.groups.settle(request, DescribeGroupsResponse(groups=groups), used, now)


def _described(coordinator: Coordinator | ErrorCode, group_id: str, version: int) -> DescribedGroup:
    if isinstance(coordinator, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=coordinator)
    group = coordinator.groups.get(group_id)
    if group is None:
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= NOT_FOUND_FROM:
            dead.error_code = E.GROUP_ID_NOT_FOUND
            reason = "is not a classic group" if coordinator.has(group_id) else "not found"
            dead.error_message = f"Group {group_id} {reason}."
        return dead
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=_members(group, stable, version),
    )


def _members(group: Group, stable: bool, version: int) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id if version >= STATIC_FROM else None,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol_name) if stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members
    ]


def error_response(body: DescribeGroupsRequest, error: ErrorCode) -> DescribeGroupsResponse:
    """Return a response with the error for each group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in body.groups]
    )
