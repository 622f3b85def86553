"""Who serves which partitions to interactive queries: the endpoints of the members of a group."""

from __future__ import annotations

from collections.abc import Mapping

from ..topics import Topics
from .members import NEW, EndpointPartitions, Member
from .metadata import StreamsGroupMetadata
from .tasks import TaskSet, by_subtopology
from .topology import Subtopology


def endpoints(
    group: StreamsGroupMetadata, last: str, topics: Topics
) -> tuple[EndpointPartitions, ...]:
    """Return the partitions at each endpoint. last: the member whose endpoint is the last one.

    A member has those of all sources of its tasks, standby and warm-up tasks together.
    """
    topology, configured = group.topology, group.configured
    if topology is None or configured is None or configured.tasks is None:
        return ()
    subtopologies = {each.subtopology_id: each for each in topology.subtopologies}
    order = [each for each in group.members.items() if each[0] != last]
    if last in group.members:
        order.append((last, group.members[last]))
    return tuple(
        partitions
        for member_id, member in order
        if (partitions := _of_member(group, member_id, member, subtopologies, topics)) is not None
    )


def _of_member(
    group: StreamsGroupMetadata,
    member_id: str,
    member: Member,
    subtopologies: Mapping[str, Subtopology],
    topics: Topics,
) -> EndpointPartitions | None:
    if member.user_endpoint is None:
        return None
    assigned = group.current.get(member_id, NEW).assigned
    return EndpointPartitions(
        member.user_endpoint,
        _partitions(assigned.active, subtopologies, topics),
        _partitions(assigned.standby | assigned.warmup, subtopologies, topics),
    )


def _partitions(
    tasks: TaskSet, subtopologies: Mapping[str, Subtopology], topics: Topics
) -> dict[str, list[int]]:
    partitions = {}
    for subtopology_id, indexes in by_subtopology(tasks).items():
        subtopology = subtopologies.get(subtopology_id)
        for name in () if subtopology is None else subtopology.sources:
            topic = topics.find(name)
            existing = [] if topic is None else [at for at in indexes if at < topic.partitions]
            if existing:
                partitions[name] = existing
    return partitions
