"""DeleteGroups: deletes groups without members, and their committed offsets.

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   response +error_message
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.coordinator import Coordinator
from ..network.connection import Connection
from ..request import DELAYED, Outcome, Request


def handle(
    broker: Broker,
    request: Request,
    body: DeleteGroupsRequest,
    _connection: Connection,
    now: float,
) -> DeleteGroupsResponse | Outcome:
    """Delete each group; the states of share partitions are deleted by share coordinators first."""
    results = [DeletableGroupResult(group_id=group_id) for group_id in body.groups_names]
    used: list[Coordinator] = []
    left = len(results) + 1

    def finish(now: float) -> None:
        nonlocal left
        left -= 1
        if not left:
            deleted = DeleteGroupsResponse(results=results)
            response = broker.groups.settle(request, deleted, used, now)
            if not isinstance(response, Outcome):
                broker.channel.respond(request.reply_to, response, now)

    def finish_one(result: DeletableGroupResult) -> Callable[[ErrorCode, float], None]:
        def finish_with(error: ErrorCode, now: float) -> None:
            result.error_code = error
            finish(now)

        return finish_with

    for result in results:
        then = finish_one(result)
        coordinator = broker.coordinator(result.group_id)
        if isinstance(coordinator, ErrorCode):
            then(coordinator, now)
            continue
        used.append(coordinator)
        share_group = coordinator.share_groups.get(result.group_id)
        if share_group is not None:
            coordinator.share_groups.delete(share_group, then, now)
        else:
            then(coordinator.delete(result.group_id, now), now)
    finish(now)
    return DELAYED


def error_response(body: DeleteGroupsRequest, error: ErrorCode) -> DeleteGroupsResponse:
    """Return a response with the error for each group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id in body.groups_names
        ]
    )
