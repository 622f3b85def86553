"""What the operator of a cluster does with its topics, by requests to the controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from ...client.failures import BrokerError
from ...controller.operations.elect_leaders import ElectionType
from ...messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ...messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from ...messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ...messages.create_topics_response import CreateTopicsResponse
from ...messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from ...messages.elect_leaders_response import ElectLeadersResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ..fixture import NewTopic

TIMEOUT_MS: Final = 30_000
DEFAULT_FACTOR: Final = -1
ELECTED: Final = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})

Send = Callable[[Message], Awaitable[Message | None]]
"""Sends a request to the controller; returns its response, None without one."""
M = TypeVar("M", bound=Message)


async def _exchange(send: Send, request: Message, response_type: type[M]) -> M:
    response = await send(request)
    if not isinstance(response, response_type):
        raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "no response of the controller")
    return response


def _check(code: int, name: str, message: str | None) -> None:
    if code:
        raise BrokerError(ErrorCode(code), f"{name}: {message}" if message else name)


async def create_topic(send: Send, topic: NewTopic) -> None:
    """Create a topic. Raises BrokerError."""
    configs = topic.configs.items()
    creatable = CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=DEFAULT_FACTOR if topic.factor is None else topic.factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )
    request = CreateTopicsRequest(topics=[creatable], timeout_ms=TIMEOUT_MS)
    response = await _exchange(send, request, CreateTopicsResponse)
    for result in response.topics:
        _check(result.error_code, topic.name, result.error_message)


async def reassign(send: Send, topic: str, partition: int, replicas: Sequence[int]) -> None:
    """Begin to move a partition to these replicas, the preferred leader first."""
    wanted = ReassignablePartition(partition_index=partition, replicas=[*replicas])
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[wanted])], timeout_ms=TIMEOUT_MS
    )
    response = await _exchange(send, request, AlterPartitionReassignmentsResponse)
    _check(response.error_code, topic, response.error_message)
    for result in response.responses[0].partitions:
        _check(result.error_code, f"{topic}-{partition}", result.error_message)


async def elect_preferred_leader(send: Send, topic: str, partition: int) -> None:
    """Let the first replica lead a partition, if it does not yet."""
    request = ElectLeadersRequest(
        election_type=ElectionType.PREFERRED,
        topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])],
        timeout_ms=TIMEOUT_MS,
    )
    response = await _exchange(send, request, ElectLeadersResponse)
    _check(response.error_code, topic, None)
    for result in response.replica_election_results[0].partition_result:
        if result.error_code not in ELECTED:
            _check(result.error_code, f"{topic}-{partition}", result.error_message)
