"""Streams groups (KIP-1071), as their coordinator describes them."""

from __future__ import annotations

from collections.abc import Iterable

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
)
from ...messages.streams_group_describe_response import Subtopology as DescribedSubtopology
from .calls import CallRunner, check_group, group_row
from .group_values import (
    StreamsGroupInfo,
    StreamsMemberInfo,
    StreamsTasks,
    StreamsTopic,
    Subtopology,
)


async def describe_group(calls: CallRunner, group_id: str) -> StreamsGroupInfo:
    """Describe a group, its topology and members."""
    row = await group_row(
        calls,
        group_id,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        StreamsGroupDescribeResponse,
        lambda _: StreamsGroupDescribeRequest(group_ids=[group_id]),
        lambda response: response.groups,
    )
    check_group(row, group_id)
    return group_info(row)


def group_info(row: DescribedGroup) -> StreamsGroupInfo:
    """Convert a group of a response."""
    topology = row.topology
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
