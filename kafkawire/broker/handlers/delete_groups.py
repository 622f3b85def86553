"""DeleteGroups: deletes groups without members, and their committed offsets.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   response +error_message
"""

from __future__ import annotations

from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Outcome, Request


def handle(
    broker: Broker,
    request: Request,
    body: DeleteGroupsRequest,
    _connection: Connection,
    now: float,
) -> DeleteGroupsResponse | Outcome:
    """Delete each group."""
    results, used = [], []
    for group_id in body.groups_names:
        coordinator = broker.coordinator(group_id)
        if isinstance(coordinator, ErrorCode):
            error = coordinator
        else:
            used.append(coordinator)
            error = coordinator.delete(group_id, now)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return broker.groups.settle(request, DeleteGroupsResponse(results=results), used, now)


def error_response(body: DeleteGroupsRequest, error: ErrorCode) -> DeleteGroupsResponse:
    """Return a response with the error for each group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id in body.groups_names
        ]
    )
