"""Checks StreamsGroupHeartbeat: its fields, who sends it, and which tasks it has.

Invariant: a request that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....configs.topic_names import topic_name_error
from ....messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from ....protocol import ErrorCode
from ...topics import INTERNAL
from ..consumer_groups.checks import ABANDON, COMMIT_FROM, STALE, CommittingMember, Refusal
from ..consumer_groups.members import JOIN, LEAVE_STATIC, NOT_SET
from .configured import ConfiguredTopology
from .members import NEW, Current, StreamsHeartbeat
from .metadata import StreamsGroupMetadata
from .tasks import Task

E = ErrorCode


def invalid_request(body: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """Return why the fields of a request are not valid."""
    if body.topology is not None and any(
        each.source_topic_regex for each in body.topology.subtopologies
    ):
        return Refusal(
            E.INVALID_REQUEST, "Regular expressions for source topics are not supported yet."
        )
    message = _invalid_field(body)
    if message is None and body.member_epoch == JOIN:
        refusal = _invalid_changelog(body)
        if refusal is not None:
            return refusal
    if message is None:
        message = _invalid_combination(body)
    return None if message is None else Refusal(E.INVALID_REQUEST, message)


def _invalid_field(body: StreamsGroupHeartbeatRequest) -> str | None:
    epoch = body.member_epoch
    joins = epoch == JOIN
    rules = (
        (not body.member_id, "MemberId can't be empty."),
        (not body.group_id, "GroupId can't be empty."),
        (body.instance_id == "", "InstanceId can't be empty."),
        (body.rack_id == "", "RackId can't be empty."),
        (
            joins and body.rebalance_timeout_ms == NOT_SET,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (joins and bool(body.active_tasks), "ActiveTasks must be empty when (re-)joining."),
        (joins and bool(body.standby_tasks), "StandbyTasks must be empty when (re-)joining."),
        (joins and bool(body.warmup_tasks), "WarmupTasks must be empty when (re-)joining."),
        (joins and body.topology is None, "Topology must be non-null when (re-)joining."),
        (epoch == LEAVE_STATIC and body.instance_id is None, "InstanceId can't be null."),
        (
            epoch < LEAVE_STATIC,
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
        ),
    )
    return next((message for broken, message in rules if broken), None)


def _invalid_combination(body: StreamsGroupHeartbeatRequest) -> str | None:
    tasks = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    some = any(each is not None for each in tasks)
    rules = (
        (
            some and any(each is None for each in tasks),
            "If one task-type is non-null, all must be non-null.",
        ),
        (
            body.member_epoch != JOIN and body.topology is not None,
            "Topology can only be provided when (re-)joining.",
        ),
    )
    return next((message for broken, message in rules if broken), None)


def _invalid_changelog(body: StreamsGroupHeartbeatRequest) -> Refusal | None:
    assert body.topology is not None
    for each in body.topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions:
                return Refusal(
                    E.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it "
                    f"is set to {topic.partitions}.",
                )
    return None


def topics_refusal(names: Iterable[str]) -> Refusal | None:
    """Return why the topics of a topology may not be used."""
    distinct = list(dict.fromkeys(names))
    prohibited = [name for name in distinct if name in INTERNAL]
    if prohibited:
        return Refusal(
            E.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is "
            "prohibited.",
        )
    invalid = [name for name in distinct if topic_name_error(name) is not None]
    if invalid:
        return Refusal(
            E.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(invalid)} are not valid topic names.",
        )
    return None


# -- who sends it


def identity_refusal(group: StreamsGroupMetadata, request: StreamsHeartbeat) -> Refusal | None:
    """Return why a member may not send a request."""
    current_id = group.static_member(request.instance_id)
    if request.joins:
        return _join_refusal(group, request, current_id)
    if request.instance_id is not None:
        if current_id is None:
            return Refusal(E.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if current_id != request.member_id:
            return Refusal(
                E.FENCED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} was "
                f"fenced by member {current_id}.",
            )
    elif request.member_id not in group.members:
        return Refusal(
            E.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    return _epoch_refusal(group, request)


def _join_refusal(
    group: StreamsGroupMetadata, request: StreamsHeartbeat, current_id: str | None
) -> Refusal | None:
    if current_id is not None:
        if group.member_epoch(current_id) == LEAVE_STATIC:
            return None
        return Refusal(
            E.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} cannot join "
            f"the group because the instance id is owned by {current_id} member.",
        )
    if request.member_id in group.members or group.population < group.config.max_size:
        return None
    return Refusal(
        E.GROUP_MAX_SIZE_REACHED,
        f"The streams group has reached its maximum capacity of {group.config.max_size} members.",
    )


def _epoch_refusal(group: StreamsGroupMetadata, request: StreamsHeartbeat) -> Refusal | None:
    """Refuse a member with another epoch than its own, but one that missed the last response."""
    epoch, current = request.member_epoch, group.current.get(request.member_id, NEW)
    if epoch < JOIN or epoch == current.epoch:
        return None
    if epoch == current.previous_epoch < current.epoch and _owns_assigned(request, current):
        return None
    compared = "greater" if epoch > current.epoch else "smaller"
    return Refusal(
        E.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {compared} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({current.epoch}). {ABANDON}",
    )


def _owns_assigned(request: StreamsHeartbeat, current: Current) -> bool:
    """Whether a member has only what it is assigned; a subtopology without tasks counts, too."""
    if request.owned is None or not request.owned.is_within(current.assigned):
        return False
    pairs = zip(request.owned_subtopologies, current.assigned, strict=False)
    return all(names <= {subtopology for subtopology, _ in tasks} for names, tasks in pairs)


# -- what it has


def tasks_refusal(configured: ConfiguredTopology, request: StreamsHeartbeat) -> Refusal | None:
    """Return why a member cannot have the tasks that it says it has."""
    if configured.is_ready and request.owned is not None:
        for tasks in request.owned:
            for task in sorted(tasks):
                message = _invalid_task(configured, task)
                if message is not None:
                    return Refusal(E.INVALID_REQUEST, message)
    return None


def _invalid_task(configured: ConfiguredTopology, task: Task) -> str | None:
    subtopology, partition = task
    number = (configured.tasks or {}).get(subtopology)
    if number is None:
        return f"Subtopology {subtopology} does not exist in the topology."
    if 0 <= partition < number:
        return None
    return (
        f"Task {partition} for subtopology {subtopology} is invalid. Number of tasks for this "
        f"subtopology: {number}"
    )


# -- commits


def commit_error(
    group: StreamsGroupMetadata, member: CommittingMember, version: int | None = None
) -> ErrorCode:
    """Return the error of a member that commits offsets; STALE_MEMBER_EPOCH for another epoch.

    version: of OffsetCommit, None in a transaction. An earlier epoch may commit some partitions.
    """
    if member.epoch < 0 and not group.population:
        return E.NONE
    if version is None and not member.is_named:
        return E.NONE
    if member.member_id not in group.members:
        return E.UNKNOWN_MEMBER_ID
    if version is not None and version < COMMIT_FROM:
        return E.UNSUPPORTED_VERSION
    return epoch_error(group, member)


def epoch_error(group: StreamsGroupMetadata, member: CommittingMember) -> ErrorCode:
    """Return the error of a member with another epoch than its own."""
    if member.member_id not in group.members:
        return E.UNKNOWN_MEMBER_ID
    return E.NONE if member.epoch == group.member_epoch(member.member_id) else STALE


def may_commit_since(
    group: StreamsGroupMetadata, member: CommittingMember, topic: str, partition: int
) -> bool:
    """Whether a member with an earlier epoch has had the task of a partition since then."""
    since = group.since_epoch(member.member_id, topic, partition)
    return since is not None and since <= member.epoch < group.member_epoch(member.member_id)
