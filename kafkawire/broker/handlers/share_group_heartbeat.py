"""ShareGroupHeartbeat: a member joins a share group, stays in it, or leaves (KIP-932).

v0   the first; flexible │ early access in 4.0, not served
v1   no new fields
"""

from __future__ import annotations

from ...messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from ...messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.checks import Refusal
from ..groups.consumer_groups.group import HeartbeatResult
from ..groups.consumer_groups.members import Partitions
from ..groups.consumer_groups.records import by_topic
from ..groups.group_types import share_heartbeat
from ..groups.share_groups.checks import invalid_request
from ..groups.share_groups.members import ShareHeartbeat
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: ShareGroupHeartbeatRequest,
    _connection: Connection,
    now: float,
) -> ShareGroupHeartbeatResponse | Outcome:
    """Pass it to the group."""
    unserved = broker.share_groups_error
    if unserved:
        return error_response(body, unserved)
    names = body.subscribed_topic_names
    heartbeat = ShareHeartbeat(
        body.group_id,
        body.member_id,
        body.member_epoch,
        body.rack_id,
        None if names is None else frozenset(names),
        request.client_id or "",
        f"/{request.client_host}",
    )
    refusal = invalid_request(heartbeat)
    if refusal is not None:
        return _refused(refusal)
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    result = share_heartbeat(coordinator, heartbeat, now)
    if isinstance(result, Refusal):
        response = _refused(result)
    else:
        interval = coordinator.share_groups.config(body.group_id).heartbeat_interval
        response = _response(result, int(interval * 1000))
    return broker.groups.settle(request, response, (coordinator,), now)


def _response(result: HeartbeatResult, interval_ms: int) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=interval_ms if result.member_epoch >= 0 else 0,
        assignment=None if result.assigned is None else _assignment(result.assigned),
    )


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]
    )


def _refused(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=refusal.error, error_message=refusal.message or None
    )


def error_response(
    _body: ShareGroupHeartbeatRequest, error: ErrorCode
) -> ShareGroupHeartbeatResponse:
    """Return a response with the error."""
    return ShareGroupHeartbeatResponse(error_code=error)
