"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455).

Old and new replicas are assigned together until all of the new ones are in sync; a
cancelled reassignment leaves those of before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from ...messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ...messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from ...messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ...metadata import MetadataImage, PartitionRegistration, TopicIdPartition, TopicImage
from ...protocol import ErrorCode
from ..partition_change import Election, PartitionTarget, change_partition
from ..state import ControllerState
from .assignments import Refused, checked

E = ErrorCode


def alter_reassignments(
    state: ControllerState,
    body: AlterPartitionReassignmentsRequest,
    _version: int,
    _now: float,
) -> AlterPartitionReassignmentsResponse:
    """Begin, change or cancel the reassignment of each partition."""
    responses = []
    for topic in body.topics:
        partitions = []
        for each in topic.partitions:
            error, message = E.NONE, None
            try:
                _alter(state, topic.name, each, body.allow_replication_factor_change)
            except Refused as refused:
                error = refused.error
                message = None if error is E.NO_REASSIGNMENT_IN_PROGRESS else refused.message
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=error, error_message=message
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=body.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


def _alter(
    state: ControllerState, name: str, wanted: ReassignablePartition, factor_may_change: bool
) -> None:
    topic = state.image.topic(name)
    partition = None if topic is None else topic.partitions.get(wanted.partition_index)
    if topic is None or partition is None:
        raise Refused(
            E.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {name}:{wanted.partition_index}.",
        )
    key = TopicIdPartition(topic.topic_id, wanted.partition_index)
    if wanted.replicas is None:
        _cancel(state, key, partition)
        return
    replicas = checked(state, wanted.replicas, None)
    original = [each for each in partition.replicas if each not in partition.adding]
    if not factor_may_change and len(replicas) != len(original):
        raise Refused(
            E.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(original)} to {len(replicas)}",
        )
    removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(original)))
    change_partition(
        state,
        key,
        PartitionTarget(replicas=replicas + removing, removing=removing, adding=adding),
    )


def _cancel(state: ControllerState, at: TopicIdPartition, partition: PartitionRegistration) -> None:
    if not partition.is_reassigning:
        raise Refused(E.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(each for each in partition.replicas if each not in partition.adding)
    if not replicas:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    isr = tuple(each for each in partition.isr if each not in partition.adding)
    unclean = state.unclean_enabled(at[0])
    if not isr and partition.isr and not unclean:
        raise Refused(
            E.INVALID_REPLICA_ASSIGNMENT,
            "Unable to revert the partition assignment because it would require an unclean "
            "leader election.",
        )
    change_partition(
        state,
        at,
        PartitionTarget(
            isr=isr or (replicas[:1] if partition.isr else ()),
            replicas=replicas,
            removing=(),
            adding=(),
            election=Election.UNCLEAN if unclean else Election.ONLINE,
        ),
    )


def list_reassignments(
    image: MetadataImage, body: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the reassignments of the named partitions, or all."""
    topics = []
    for topic, wanted in _listed(image, body):
        partitions = [
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(registration.replicas),
                adding_replicas=list(registration.adding),
                removing_replicas=list(registration.removing),
            )
            for index in wanted
            if (registration := topic.partitions.get(index)) is not None
            and registration.is_reassigning
        ]
        if partitions:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=partitions))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _listed(
    image: MetadataImage, body: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, Iterable[int]]]:
    if body.topics is None:
        index = image.indexes.reassigning
        for topic_id in list(index):
            yield image.topics[topic_id], [at[1] for at in index.of(topic_id)]
        return
    for each in body.topics:
        topic = image.topic(each.name)
        if topic is not None:
            yield topic, each.partition_indexes
