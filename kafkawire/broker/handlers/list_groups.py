"""ListGroups: lists the groups that this broker coordinates.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ throttled after the response
v3   flexible
v4   request +states_filter; response +group_state
v5   request +types_filter; response +group_type
"""

from __future__ import annotations

from typing import Final

from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListedGroup, ListGroupsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Outcome, Request

CLASSIC: Final = "classic"
STATES_FROM: Final = 4
TYPES_FROM: Final = 5


def handle(
    broker: Broker, request: Request, body: ListGroupsRequest, _connection: Connection, now: float
) -> ListGroupsResponse | Outcome:
    """List groups in the requested states and of the requested types."""
    states = {state.lower() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    coordinators = broker.coordinators()
    if isinstance(coordinators, ErrorCode):
        return error_response(body, coordinators)
    groups = [group for coordinator in coordinators for group in coordinator.groups.values()]
    response = ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value if request.version >= STATES_FROM else "",
                group_type=CLASSIC if request.version >= TYPES_FROM else "",
            )
            for group in groups
            if (not states or group.state.value.lower() in states)
            and (not types or CLASSIC in types)
        ]
    )
    return broker.groups.settle(request, response, coordinators, now)


def error_response(_body: ListGroupsRequest, error: ErrorCode) -> ListGroupsResponse:
    """Return a response with the error."""
    return ListGroupsResponse(error_code=error)
