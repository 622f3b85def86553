"""Streams groups (KIP-1071), as their coordinator describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.streams_group_describe_request import StreamsGroupDescribeRequest
from ...messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
    TopicInfo,
    TopologyDescriptionNode,
)
from ...messages.streams_group_describe_response import Subtopology as DescribedSubtopology
from ...messages.streams_group_describe_response import TopologyDescription as DescribedTopology
from .calls import CallRunner, check_group, group_row
from .group_values import (
    StreamsGroupInfo,
    StreamsMemberInfo,
    StreamsTasks,
    StreamsTopic,
    Subtopology,
    TopologyDescription,
    TopologyDescriptionStatus,
    TopologyNode,
)

DESCRIPTION_FROM: Final = 1
"""StreamsGroupDescribe returns descriptions of topologies from this version on (KIP-1331)."""
STATUSES: Final = {status.value: status for status in TopologyDescriptionStatus}
NODE_TYPES: Final[Mapping[int, str]] = {1: "source", 2: "processor", 3: "sink"}
"""Names of the types of nodes, as those of Kafka's classes; others are unknown."""


async def describe_group(
    calls: CallRunner, group_id: str, include_topology_description: bool = False
) -> StreamsGroupInfo:
    """Describe a group, its topology and members; also the graph of the topology on request."""
    row = await group_row(
        calls,
        group_id,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        StreamsGroupDescribeResponse,
        lambda version: StreamsGroupDescribeRequest(
            group_ids=[group_id],
            include_topology_description=include_topology_description
            and version >= DESCRIPTION_FROM,
        ),
        lambda response: response.groups,
    )
    check_group(row, group_id)
    return group_info(row)


def group_info(row: DescribedGroup) -> StreamsGroupInfo:
    """Convert a group of a response."""
    topology, description = row.topology, row.topology_description
    subtopologies = None if topology is None else topology.subtopologies
    return StreamsGroupInfo(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        row.assignor_name,
        None if topology is None else topology.epoch,
        tuple(sorted(map(_subtopology, subtopologies or ()))),
        tuple(sorted(map(_member, row.members), key=lambda member: member.member_id)),
        STATUSES.get(row.topology_description_status, TopologyDescriptionStatus.UNKNOWN),
        None if description is None else _description(description),
    )


def _description(described: DescribedTopology) -> TopologyDescription:
    subtopologies = sorted(described.subtopologies, key=lambda row: row.subtopology_id)
    return TopologyDescription(
        {row.subtopology_id: tuple(map(_node, row.nodes)) for row in subtopologies},
        tuple((_node(row.source), _node(row.processor)) for row in described.global_stores),
    )


def _node(node: TopologyDescriptionNode) -> TopologyNode:
    return TopologyNode(
        node.name,
        NODE_TYPES.get(node.node_type, "unknown"),
        tuple(sorted(node.source_topics)),
        node.sink_topic,
        tuple(sorted(node.stores)),
        tuple(sorted(node.successors)),
    )


def _subtopology(described: DescribedSubtopology) -> Subtopology:
    return Subtopology(
        described.subtopology_id,
        tuple(sorted(described.source_topics)),
        tuple(sorted(described.repartition_sink_topics)),
        tuple(sorted(map(_topic, described.state_changelog_topics))),
        tuple(sorted(map(_topic, described.repartition_source_topics))),
    )


def _topic(topic: TopicInfo) -> StreamsTopic:
    configs = tuple(sorted((config.key, config.value) for config in topic.topic_configs))
    return StreamsTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(member: Member) -> StreamsMemberInfo:
    endpoint = member.user_endpoint
    return StreamsMemberInfo(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        tuple(sorted((tag.key, tag.value) for tag in member.client_tags)),
        _offsets(member.task_offsets),
        _offsets(member.task_end_offsets),
        _tasks(member.assignment),
        _tasks(member.target_assignment),
        member.is_classic,
    )


def _offsets(offsets: Iterable[TaskOffset]) -> dict[tuple[str, int], int]:
    return dict(sorted(((row.subtopology_id, row.partition), row.offset) for row in offsets))


def _tasks(assignment: Assignment) -> StreamsTasks:
    return StreamsTasks(
        _task_ids(assignment.active_tasks),
        _task_ids(assignment.standby_tasks),
        _task_ids(assignment.warmup_tasks),
    )


def _task_ids(tasks: Iterable[TaskIds]) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted((row.subtopology_id, partition) for row in tasks for partition in row.partitions)
    )
