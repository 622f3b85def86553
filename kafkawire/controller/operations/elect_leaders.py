"""ElectLeaders (KIP-183, KIP-460), and the elections that the controller begins itself.

An election by request of a partition that does not need it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ...messages.elect_leaders_request import ElectLeadersRequest
from ...messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ...metadata import NO_LEADER, TopicIdPartition
from ...protocol import ErrorCode
from ..partition_change import Election, PartitionTarget, change_partition
from ..state import ControllerState

E = ErrorCode


class ElectionType(IntEnum):
    """The type of an election in a request."""

    PREFERRED = 0
    UNCLEAN = 1


ELECTIONS = {
    ElectionType.PREFERRED: (Election.PREFERRED, E.PREFERRED_LEADER_NOT_AVAILABLE),
    ElectionType.UNCLEAN: (Election.UNCLEAN, E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
}
"""Type -> the election, and the error when it finds no other leader."""


def elect_leaders(
    state: ControllerState, body: ElectLeadersRequest, _version: int, _now: float
) -> ElectLeadersResponse:
    """Elect leaders of the named partitions, or of all that need it."""
    if body.election_type not in list(ElectionType):
        return ElectLeadersResponse(error_code=E.INVALID_REQUEST)
    type = ElectionType(body.election_type)
    results: dict[str, list[PartitionResult]] = {}
    for topic, index in list(_wanted(state, body, type)):
        error, message = _elect(state, topic, index, type)
        results.setdefault(topic, []).append(
            PartitionResult(partition_id=index, error_code=error, error_message=message)
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=partitions)
            for topic, partitions in results.items()
        ]
    )


def _wanted(
    state: ControllerState, body: ElectLeadersRequest, type: ElectionType
) -> Iterator[tuple[str, int]]:
    if body.topic_partitions is not None:
        for each in body.topic_partitions:
            for index in each.partitions:
                yield each.topic, index
        return
    indexes = state.image.indexes
    partitions = indexes.leaders.of(NO_LEADER)
    if type is ElectionType.PREFERRED:
        partitions += indexes.imbalanced.of(True)
    for topic_id, index in partitions:
        yield state.image.topics[topic_id].name, index


def _elect(
    state: ControllerState, name: str, index: int, type: ElectionType
) -> tuple[ErrorCode, str | None]:
    topic = state.image.topic(name)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None:
        what = f"topic as {name}" if topic is None else f"partition as {name}-{index}"
        return E.UNKNOWN_TOPIC_OR_PARTITION, f"No such {what}"
    if type is ElectionType.PREFERRED:
        needless = partition.has_preferred_leader
    else:
        needless = partition.leader != NO_LEADER
    if needless:
        return E.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    election, unavailable = ELECTIONS[type]
    target = PartitionTarget(election=election)
    changed = change_partition(state, TopicIdPartition(topic.topic_id, index), target)
    return (E.NONE, None) if changed is not None else (unavailable, None)


def rebalance(state: ControllerState) -> bool:
    """Elect preferred leaders where another leads; return whether more may be left."""
    elected = 0
    for at in state.image.indexes.imbalanced.of(True):
        if elected >= state.config.max_elections:
            return True
        target = PartitionTarget(election=Election.PREFERRED)
        elected += change_partition(state, at, target) is not None
    return False


def elect_uncleanly(state: ControllerState) -> None:
    """Elect any active replica where nobody leads and the topic allows it."""
    for at in state.image.indexes.leaders.of(NO_LEADER):
        if state.unclean_enabled(at[0]):
            change_partition(state, at, PartitionTarget(election=Election.UNCLEAN))
