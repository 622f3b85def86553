"""ConsumerGroupHeartbeat: a member joins a consumer group, stays in it, or leaves (KIP-848).

v0   the first; flexible
v1   request +subscribed_topic_regex │ clients choose their member ids (KIP-1082)
"""

from __future__ import annotations

from typing import Final

from ...configs.features import GROUP
from ...messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from ...messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.checks import Refusal, invalid_request
from ..groups.consumer_groups.group import HeartbeatResult
from ..groups.consumer_groups.members import (
    HeartbeatRequest,
    MayDescribe,
    Partitions,
    may_describe_any,
)
from ..groups.consumer_groups.metadata import DEFAULT_CONFIG
from ..groups.consumer_groups.records import by_topic, partitions_of
from ..groups.group_types import consumer_heartbeat
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
CONSUMER: Final = "consumer"


def handle(
    broker: Broker,
    request: Request,
    body: ConsumerGroupHeartbeatRequest,
    _connection: Connection,
    now: float,
) -> ConsumerGroupHeartbeatResponse | Outcome:
    """Pass it to the group."""
    is_enabled = CONSUMER in broker.settings.items(PROTOCOLS)
    unserved = broker.feature_error(GROUP) if is_enabled else E.UNSUPPORTED_VERSION
    if unserved:
        return error_response(body, unserved)
    heartbeat = _group_request(broker, request, body)
    coordinator = broker.coordinator(body.group_id) if body.group_id else None
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    config = DEFAULT_CONFIG
    if coordinator is not None:
        config = coordinator.consumer_groups.config(body.group_id)
    refusal = invalid_request(heartbeat, request.version, config.assignors)
    if refusal is not None or coordinator is None:
        return _refused(refusal or Refusal(E.INVALID_GROUP_ID, ""))
    result = consumer_heartbeat(coordinator, heartbeat, now)
    if isinstance(result, Refusal):
        response = _refused(result)
    else:
        response = _response(result, int(config.heartbeat_interval * 1000))
    return broker.groups.settle(request, response, (coordinator,), now)


def _group_request(
    broker: Broker, request: Request, body: ConsumerGroupHeartbeatRequest
) -> HeartbeatRequest:
    names, owned = body.subscribed_topic_names, body.topic_partitions
    member_id = body.member_id
    if not member_id and body.member_epoch == 0 and request.version == 0:
        member_id = broker.context.new_uuid().hex()
    return HeartbeatRequest(
        body.group_id,
        member_id,
        body.member_epoch,
        body.instance_id,
        body.rack_id,
        body.rebalance_timeout_ms,
        None if names is None else frozenset(names),
        body.subscribed_topic_regex,
        body.server_assignor,
        None if owned is None else partitions_of(owned),
        request.client_id or "",
        f"/{request.client_host}",
        may_describe=_may_describe(broker, request),
        owned_topics=frozenset(each.topic_id for each in owned or ()),
    )


def _may_describe(broker: Broker, request: Request) -> MayDescribe:
    if broker.authorizer is None:
        return may_describe_any
    from ..guards.groups import may_describe  # imported only with an authorizer

    return may_describe(broker, request)


def _response(result: HeartbeatResult, interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
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


def _refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=refusal.error, error_message=refusal.message or None
    )


def error_response(
    _body: ConsumerGroupHeartbeatRequest, error: ErrorCode
) -> ConsumerGroupHeartbeatResponse:
    """Return a response with the error."""
    return ConsumerGroupHeartbeatResponse(error_code=error)
