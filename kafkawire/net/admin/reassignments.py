"""Partitions whose replicas move to other brokers (KIP-455), and elections of leaders (KIP-460)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from ...client.requests import CONTROLLER
from ...messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ...messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from ...messages.api_key import ApiKey
from ...messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from ...messages.elect_leaders_response import ElectLeadersResponse
from ...messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ...messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from ...protocol.error_code import ErrorCode
from .calls import CallRunner, check
from .values import PartitionReassignment

FACTOR_FROM: Final = 1
"""AlterPartitionReassignments can refuse other replication factors from this version on."""
TYPES_FROM: Final = 1
"""ElectLeaders has unclean elections from this version on."""
PREFERRED: Final = 0
UNCLEAN: Final = 1
Partition = tuple[str, int]


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Group partitions by topic."""
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        topics[topic].append(index)
    return topics


async def alter(
    calls: CallRunner,
    replicas: Mapping[Partition, list[int] | None],
    timeout_ms: int,
    *,
    allow_factor_change: bool,
) -> None:
    """Start and cancel reassignments."""
    topics = [
        ReassignableTopic(
            name=name,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=replicas[name, index])
                for index in indexes
            ],
        )
        for name, indexes in by_topic(replicas).items()
    ]
    response = await calls.call(
        CONTROLLER,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        AlterPartitionReassignmentsResponse,
        lambda _: AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=allow_factor_change,
            topics=topics,
        ),
        lambda response: [
            response.error_code,
            *(row.error_code for topic in response.responses for row in topic.partitions),
        ],
        lowest=0 if allow_factor_change else FACTOR_FROM,
    )
    check(response.error_code, "reassignments", response.error_message)
    for topic in response.responses:
        for row in topic.partitions:
            check(row.error_code, f"{topic.name}-{row.partition_index}", row.error_message)


async def list_reassignments(
    calls: CallRunner, partitions: list[Partition] | None, timeout_ms: int
) -> dict[Partition, PartitionReassignment]:
    """Return the reassignments in progress, sorted."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    response = await calls.call(
        CONTROLLER,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ListPartitionReassignmentsResponse,
        lambda _: ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics),
        lambda response: [response.error_code],
    )
    check(response.error_code, "reassignments", response.error_message)
    rows = {
        (topic.name, row.partition_index): PartitionReassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in response.topics
        for row in topic.partitions
    }
    return dict(sorted(rows.items()))


async def elect_leaders(
    calls: CallRunner, partitions: list[Partition] | None, timeout_ms: int, *, unclean: bool
) -> list[Partition]:
    """Elect leaders; return the partitions with a new one."""
    topics = None
    if partitions is not None:
        topics = [
            TopicPartitions(topic=name, partitions=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    response = await calls.call(
        CONTROLLER,
        ApiKey.ELECT_LEADERS,
        ElectLeadersResponse,
        lambda _: ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=topics,
            timeout_ms=timeout_ms,
        ),
        lambda response: [response.error_code],
        lowest=TYPES_FROM if unclean else 0,
    )
    check(response.error_code, "leaders")
    elected: list[Partition] = []
    for topic in response.replica_election_results:
        for row in topic.partition_result:
            if row.error_code == ErrorCode.ELECTION_NOT_NEEDED:
                continue
            check(row.error_code, f"{topic.topic}-{row.partition_id}", row.error_message)
            elected.append((topic.topic, row.partition_id))
    return sorted(elected)
