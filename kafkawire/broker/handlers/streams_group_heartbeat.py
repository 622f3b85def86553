"""StreamsGroupHeartbeat: a member joins a Streams group, stays in it, or leaves (KIP-1071).

v0   the first; flexible
v1   response +acceptable_recovery_lag +topology_description_required
     -acceptable_recovery_lag_legacy
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from ...messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from ...messages.streams_group_heartbeat_response import (
    Endpoint,
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicPartition,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.consumer_groups.checks import Refusal
from ..groups.coordinator import Coordinator
from ..groups.group_types import streams_heartbeat
from ..groups.streams_groups.checks import invalid_request, topics_refusal
from ..groups.streams_groups.configured import StatusCode
from ..groups.streams_groups.members import (
    EndpointPartitions,
    HeartbeatResult,
    StreamsHeartbeat,
    UserEndpoint,
)
from ..groups.streams_groups.tasks import Tasks, offsets_of, tasks_of
from ..groups.streams_groups.topology import InternalTopic
from ..groups.streams_groups.wire import pairs_of, task_ids, topology_of
from ..guards.access import access_of
from ..guards.streams import topics_of
from ..network.connection import Connection
from ..request import Outcome, Request
from ..security.permissions import Permission as P

E = ErrorCode
TASK_OFFSET_INTERVAL_MS: Final = 60_000
"""Kafka's default of `group.streams.task.offset.interval.ms`, an internal setting."""
RECOVERY_LAG: Final = 10_000
"""Kafka's default of `group.streams.acceptable.recovery.lag`, an internal setting."""
LAG_FROM: Final = 1
SHOWN: Final = 3
"""How many topics that could not be created a response names."""


def handle(
    broker: Broker,
    request: Request,
    body: StreamsGroupHeartbeatRequest,
    _connection: Connection,
    now: float,
) -> StreamsGroupHeartbeatResponse | Outcome:
    """Pass it to the group, and create the internal topics that are missing."""
    unserved = broker.streams_groups_error
    if unserved:
        return error_response(body, unserved)
    refusal = None if body.topology is None else topics_refusal(topics_of(body.topology))
    refusal = refusal or invalid_request(body)
    if refusal is not None:
        return _refused(refusal)
    coordinator = broker.coordinator(body.group_id)
    if isinstance(coordinator, ErrorCode):
        return error_response(body, coordinator)
    try:
        heartbeat = _heartbeat(request, body)
    except ValueError as invalid:
        return _refused(Refusal(E.INVALID_REQUEST, str(invalid)))
    result = streams_heartbeat(coordinator, heartbeat, now)
    if isinstance(result, Refusal):
        response = _refused(result)
    else:
        response = _response(coordinator, request, body, result)
        _create_topics(broker, coordinator, request, body.group_id, response, now)
    return broker.groups.settle(request, response, (coordinator,), now)


def _heartbeat(request: Request, body: StreamsGroupHeartbeatRequest) -> StreamsHeartbeat:
    topology, endpoint, tags = body.topology, body.user_endpoint, body.client_tags
    active, standby, warmup = body.active_tasks, body.standby_tasks, body.warmup_tasks
    owned = None
    if active is not None and standby is not None and warmup is not None:
        owned = Tasks(tasks_of(active), tasks_of(standby), tasks_of(warmup))
    offsets, ends = body.task_offsets, body.task_end_offsets
    return StreamsHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topology=None if topology is None else topology_of(topology.epoch, topology.subtopologies),
        owned=owned,
        owned_subtopologies=tuple(
            frozenset(each.subtopology_id for each in tasks or ())
            for tasks in (active, standby, warmup)
        ),
        process_id=body.process_id,
        user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple(sorted(dict(pairs_of(tags)).items())),
        task_offsets=None if offsets is None else offsets_of(offsets),
        task_end_offsets=None if ends is None else offsets_of(ends),
        endpoint_epoch=body.endpoint_information_epoch,
        shuts_down=body.shutdown_application,
        client_id=request.client_id or "",
        client_host=f"/{request.client_host}",
        version=request.version,
    )


# -- the response


def _response(
    coordinator: Coordinator,
    request: Request,
    body: StreamsGroupHeartbeatRequest,
    result: HeartbeatResult,
) -> StreamsGroupHeartbeatResponse:
    if result.member_epoch < 0:
        return StreamsGroupHeartbeatResponse(
            member_id=result.member_id, member_epoch=result.member_epoch, status=[]
        )
    interval = coordinator.streams_groups.config(body.group_id).heartbeat_interval
    tasks, endpoints = result.assigned, result.endpoints
    return StreamsGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=int(interval * 1000),
        task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS,
        acceptable_recovery_lag=RECOVERY_LAG if request.version >= LAG_FROM else -1,
        status=[Status(status_code=each.code, status_detail=each.detail) for each in result.status],
        active_tasks=None if tasks is None else task_ids(tasks.active, TaskIds),
        standby_tasks=None if tasks is None else task_ids(tasks.standby, TaskIds),
        warmup_tasks=None if tasks is None else task_ids(tasks.warmup, TaskIds),
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=None if endpoints is None else list(map(_endpoint, endpoints)),
    )


def _endpoint(each: EndpointPartitions) -> EndpointToPartitions:
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=each.endpoint.host, port=each.endpoint.port),
        active_partitions=_partitions(each.active),
        standby_partitions=_partitions(each.standby),
    )


def _partitions(partitions: Mapping[str, list[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic=name, partitions=of) for name, of in partitions.items()]


# -- internal topics


def _create_topics(
    broker: Broker,
    coordinator: Coordinator,
    request: Request,
    group_id: str,
    response: StreamsGroupHeartbeatResponse,
    now: float,
) -> None:
    """Let missing internal topics be created, if the sender may; say in the status if not."""
    missing = [
        each
        for each in response.status or ()
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
    ]
    group = coordinator.streams_groups.get(group_id)
    if not missing or group is None or group.configured is None:
        return
    topics = [_creatable(each) for each in group.configured.missing]
    names = [each.name for each in topics]
    access = access_of(broker, request)
    refused: list[str] = []
    if access is not None and not access.may(P.CREATE_IN_CLUSTER):
        refused = access.split(P.CREATE_TOPIC, names, lambda name: name)[1]
    if refused:
        missing[0].status_detail += f"; Unauthorized to CREATE on topics {', '.join(refused)}."
        return
    creation = broker.topic_creation
    creation.create_internal(topics, 2 * group.config.heartbeat_interval, now)
    failed = [f"{name} ({reason})" for name, reason in creation.failures(names, now)]
    if failed:
        more = f" and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        missing[0].status_detail += f"; Creation failed: {', '.join(failed[:SHOWN])}{more}."


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs],
    )


def _refused(refusal: Refusal) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=refusal.error, error_message=refusal.message or None
    )


def error_response(
    _body: StreamsGroupHeartbeatRequest, error: ErrorCode
) -> StreamsGroupHeartbeatResponse:
    """Return a response with the error."""
    return StreamsGroupHeartbeatResponse(error_code=error)
