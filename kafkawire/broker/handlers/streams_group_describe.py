"""StreamsGroupDescribe: returns topologies, epochs, members and tasks of Streams groups (KIP-1071).

v0   the first; flexible
v1   request +include_topology_description; response +topology_description
     +topology_description_status +assignor_name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...messages.streams_group_describe_request import StreamsGroupDescribeRequest
from ...messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from ...protocol import ErrorCode
from ..broker import Broker
from ..groups.coordinator import Coordinator
from ..groups.group_types import absent_message, described
from ..groups.streams_groups.assignor import STICKY
from ..groups.streams_groups.group import StreamsGroup
from ..groups.streams_groups.members import NEW, NO_OFFSETS
from ..groups.streams_groups.tasks import NOTHING, Task, Tasks
from ..groups.streams_groups.topology import InternalTopic
from ..groups.streams_groups.wire import task_ids, topic_infos
from ..network.connection import Connection
from ..request import Outcome, Request
from ..security.operations import GROUP_OPERATIONS

E = ErrorCode
FROM: Final = 1
"""The version from which on the assignor has its name, and descriptions of topologies a status."""
NOT_REQUESTED: Final = 0
NOT_STORED: Final = 1


def handle(
    broker: Broker,
    request: Request,
    body: StreamsGroupDescribeRequest,
    _connection: Connection,
    now: float,
) -> StreamsGroupDescribeResponse | Outcome:
    """Describe each group, duplicates once."""
    unserved = broker.streams_groups_error
    if unserved:
        return error_response(body, unserved)
    groups, used = described(
        body.group_ids,
        broker.coordinator,
        lambda group_id, coordinator: _described(coordinator, group_id, request.version),
        GROUP_OPERATIONS if body.include_authorized_operations else None,
    )
    for group in groups if body.include_topology_description else ():
        # none is stored: that takes a plugin of the broker (KIP-1331)
        group.topology_description_status = NOT_REQUESTED if group.error_code else NOT_STORED
    return broker.groups.settle(request, StreamsGroupDescribeResponse(groups=groups), used, now)


def _described(coordinator: Coordinator | ErrorCode, group_id: str, version: int) -> DescribedGroup:
    if isinstance(coordinator, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=coordinator)
    group = coordinator.streams_groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=E.GROUP_ID_NOT_FOUND,
            error_message=absent_message(coordinator, group_id, "streams"),
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=_members(group),
        assignor_name=STICKY if version >= FROM else None,
    )


def _topology(group: StreamsGroup) -> Topology | None:
    """Return the topology, with the partitions that were decided if all topics fit it."""
    topology, configured = group.topology, group.configured
    if topology is None:
        return None
    partitions: Mapping[str, int] = {}
    if configured is not None and configured.is_ready:
        partitions = configured.partitions or {}

    def infos(topics: tuple[InternalTopic, ...]) -> list[TopicInfo]:
        decided = (
            each._replace(partitions=partitions.get(each.name, each.partitions)) for each in topics
        )
        return topic_infos(sorted(decided), TopicInfo, KeyValue)

    return Topology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                repartition_source_topics=infos(each.repartition_source_topics),
                state_changelog_topics=infos(each.state_changelog_topics),
            )
            for each in sorted(topology.subtopologies)
        ],
    )


def _members(group: StreamsGroup) -> list[Member]:
    members = []
    for member_id, member in group.members.items():
        current = group.current.get(member_id, NEW)
        offsets = group.offsets.get(member_id, NO_OFFSETS)
        endpoint = member.user_endpoint
        members.append(
            Member(
                member_id=member_id,
                member_epoch=current.epoch,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topology_epoch=member.topology_epoch,
                process_id=member.process_id,
                user_endpoint=None
                if endpoint is None
                else Endpoint(host=endpoint.host, port=endpoint.port),
                client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags],
                task_offsets=_offsets(offsets.offsets),
                task_end_offsets=_offsets(offsets.end_offsets),
                assignment=_assignment(current.assigned),
                target_assignment=_assignment(group.targets.get(member_id, NOTHING)),
            )
        )
    return members


def _offsets(offsets: Mapping[Task, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offset)
        for (subtopology, partition), offset in sorted(offsets.items())
    ]


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(
        active_tasks=task_ids(tasks.active, TaskIds),
        standby_tasks=task_ids(tasks.standby, TaskIds),
        warmup_tasks=task_ids(tasks.warmup, TaskIds),
    )


def error_response(
    body: StreamsGroupDescribeRequest, error: ErrorCode
) -> StreamsGroupDescribeResponse:
    """Return a response with the error for each group."""
    return StreamsGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in body.group_ids]
    )
