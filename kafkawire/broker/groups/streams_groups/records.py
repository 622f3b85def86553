"""Encodes and decodes the changes of a Streams group as records of `__consumer_offsets`.

StreamsGroupMetadata                  EpochChanged        by group
StreamsGroupTopology                  TopologyChanged     by group
StreamsGroupMemberMetadata            MemberChanged       by group and member
StreamsGroupTargetAssignmentMetadata  TargetEpochChanged  by group
StreamsGroupTargetAssignmentMember    TargetChanged       by group and member
StreamsGroupCurrentMemberAssignment   CurrentChanged      by group and member
"""

# over 300 lines: six kinds of records, each written and read

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ....messages import streams_group_current_member_assignment_value as of_current
from ....messages import streams_group_target_assignment_member_value as of_target
from ....messages import streams_group_topology_value as of_topology
from ....messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from ....messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from ....messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from ....messages.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from ....messages.streams_group_metadata_key import StreamsGroupMetadataKey
from ....messages.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from ....messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from ....messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from ....messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from ....messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from ....messages.streams_group_topology_key import StreamsGroupTopologyKey
from ....messages.streams_group_topology_value import StreamsGroupTopologyValue
from ....primitives import Message, Structure
from ....protocol.log_records import encode_log_message
from ..consumer_groups.changes import TargetEpochChanged
from ..consumer_groups.members import INITIAL_EPOCH, MemberState
from ..offsets import LogRecord
from .changes import (
    Change,
    CurrentChanged,
    Deleted,
    EpochChanged,
    MemberChanged,
    TargetChanged,
    TopologyChanged,
)
from .members import Current, Member, UserEndpoint
from .tasks import Task, Tasks, TaskSet, by_subtopology, tasks_of
from .topology import Topology
from .wire import pairs_of, task_ids, topic_infos, topology_of

VERSION: Final = 0
"""The only version of each key and value."""


# -- writing


def encode(group_id: str, change: Change) -> list[LogRecord]:
    """Encode a change of a group."""
    return [
        (
            encode_log_message(key, VERSION),
            None if value is None else encode_log_message(value, VERSION),
        )
        for key, value in _messages(group_id, change)
    ]


def _messages(group_id: str, change: Change) -> list[tuple[Message, Message | None]]:
    match change:
        case EpochChanged():
            return [(StreamsGroupMetadataKey(group_id=group_id), _epoch(change))]
        case TopologyChanged(topology):
            topology_key = StreamsGroupTopologyKey(group_id=group_id)
            return [(topology_key, None if topology is None else _topology(topology))]
        case MemberChanged(member_id, member):
            member_key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            return [(member_key, None if member is None else _member(member))]
        case TargetEpochChanged(epoch, timestamp):
            target = StreamsGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp
            )
            return [(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), target)]
        case TargetChanged(member_id, tasks):
            key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            return [(key, None if tasks is None else _target(tasks))]
        case CurrentChanged(member_id, current):
            of = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            return [(of, None if current is None else _current(current))]
        case Deleted():
            return [
                (StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
                (StreamsGroupMetadataKey(group_id=group_id), None),
                (StreamsGroupTopologyKey(group_id=group_id), None),
            ]


def _epoch(change: EpochChanged) -> StreamsGroupMetadataValue:
    return StreamsGroupMetadataValue(
        epoch=change.epoch,
        metadata_hash=change.metadata_hash,
        validated_topology_epoch=change.validated_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=value) for key, value in change.configs
        ],
    )


def _topology(topology: Topology) -> StreamsGroupTopologyValue:
    info, pair = of_topology.TopicInfo, of_topology.TopicConfig
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            of_topology.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=list(each.source_topics),
                repartition_sink_topics=list(each.repartition_sink_topics),
                repartition_source_topics=topic_infos(each.repartition_source_topics, info, pair),
                state_changelog_topics=topic_infos(each.state_changelog_topics, info, pair),
                copartition_groups=[
                    of_topology.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.subtopologies
        ],
    )


def _member(member: Member) -> StreamsGroupMemberMetadataValue:
    endpoint = member.user_endpoint
    return StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags],
    )


def _target(tasks: Tasks) -> StreamsGroupTargetAssignmentMemberValue:
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=task_ids(tasks.active, of_target.TaskIds),
        standby_tasks=task_ids(tasks.standby, of_target.TaskIds),
        warmup_tasks=task_ids(tasks.warmup, of_target.TaskIds),
    )


def _current(current: Current) -> StreamsGroupCurrentMemberAssignmentValue:
    def active(tasks: TaskSet) -> list[of_current.TaskIds]:
        return [
            of_current.TaskIds(
                subtopology_id=each,
                partitions=partitions,
                assignment_epochs=[current.since_epoch((each, at)) or 0 for at in partitions],
            )
            for each, partitions in by_subtopology(tasks).items()
        ]

    ids = of_current.TaskIds
    revoked = current.pending_revocation
    return StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        active_tasks=active(current.assigned.active),
        standby_tasks=task_ids(current.assigned.standby, ids),
        warmup_tasks=task_ids(current.assigned.warmup, ids),
        active_tasks_pending_revocation=active(revoked.active),
        standby_tasks_pending_revocation=task_ids(revoked.standby, ids),
        warmup_tasks_pending_revocation=task_ids(revoked.warmup, ids),
    )


# -- reading


def decode(key: Structure, value: Structure | None) -> tuple[str, Change] | None:
    """Decode a record: the id of the group and the change; None for one of another kind."""
    kind = _CHANGES.get(type(key))
    return None if kind is None else kind(key, value)


def _epoch_changed(
    key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> tuple[str, Change]:
    if value is None:
        return key.group_id, Deleted()
    configs = pairs_of(value.last_assignment_configs or ())
    return key.group_id, EpochChanged(
        value.epoch, value.metadata_hash, value.validated_topology_epoch, configs
    )


def _topology_changed(
    key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> tuple[str, Change]:
    topology = None if value is None else topology_of(value.epoch, value.subtopologies)
    return key.group_id, TopologyChanged(topology)


def _member_changed(
    key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None
) -> tuple[str, Change]:
    member = None
    if value is not None:
        endpoint = value.user_endpoint
        member = Member(
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            value.rebalance_timeout_ms,
            value.topology_epoch,
            value.process_id,
            None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            pairs_of(value.client_tags),
        )
    return key.group_id, MemberChanged(key.member_id, member)


def _target_epoch_changed(
    key: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
) -> tuple[str, Change]:
    if value is None:
        return key.group_id, TargetEpochChanged(INITIAL_EPOCH, 0)
    return key.group_id, TargetEpochChanged(value.assignment_epoch, value.assignment_timestamp)


def _target_changed(
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> tuple[str, Change]:
    tasks = None
    if value is not None:
        tasks = Tasks(
            tasks_of(value.active_tasks),
            tasks_of(value.standby_tasks),
            tasks_of(value.warmup_tasks),
        )
    return key.group_id, TargetChanged(key.member_id, tasks)


def _since(items: Iterable[of_current.TaskIds]) -> dict[Task, int]:
    """Return the epochs since which a member has active tasks; older records have none."""
    return {
        (each.subtopology_id, partition): epoch
        for each in items
        for partition, epoch in zip(each.partitions, each.assignment_epochs or (), strict=False)
    }


def _current_changed(
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> tuple[str, Change]:
    current = None
    if value is not None:
        states = {state.value: state for state in MemberState}
        current = Current(
            value.member_epoch,
            value.previous_member_epoch,
            states.get(value.state, MemberState.STABLE),
            Tasks(
                tasks_of(value.active_tasks),
                tasks_of(value.standby_tasks),
                tasks_of(value.warmup_tasks),
            ),
            Tasks(
                tasks_of(value.active_tasks_pending_revocation),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
            _since([*value.active_tasks, *value.active_tasks_pending_revocation]),
        )
    return key.group_id, CurrentChanged(key.member_id, current)


_CHANGES: Final[Mapping[type[Structure], Any]] = {
    StreamsGroupMetadataKey: _epoch_changed,
    StreamsGroupTopologyKey: _topology_changed,
    StreamsGroupTargetAssignmentMetadataKey: _target_epoch_changed,
    StreamsGroupMemberMetadataKey: _member_changed,
    StreamsGroupTargetAssignmentMemberKey: _target_changed,
    StreamsGroupCurrentMemberAssignmentKey: _current_changed,
}
