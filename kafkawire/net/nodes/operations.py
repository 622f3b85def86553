"""What the operator of a cluster does with its topics, by requests to the controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from ...metadata import NO_LEADER, MetadataImage, PartitionRegistration
from ...primitives import Message
from ...protocol import ErrorCode

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


async def create_topic(
    send: Send, name: str, partitions: int, factor: int | None, configs: Mapping[str, str]
) -> None:
    """Create a topic. factor: None for the default. Raises BrokerError."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=DEFAULT_FACTOR if factor is None else factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    response = await _exchange(send, request, CreateTopicsResponse)
    for result in response.topics:
        _check(result.error_code, name, result.error_message)


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


async def move_leader(
    send: Send,
    image: Callable[[], MetadataImage],
    until: Callable[[Callable[[], bool]], Awaitable[None]],
    partition: tuple[str, int],
    leader_id: int,
) -> None:
    """Reassign a partition so that a broker is its preferred leader, and elect it.

    image: returns the newest metadata. until: waits until a function returns true. Raises
    ValueError if there is no such partition, BrokerError.
    """
    topic, index = partition
    registration = find(image(), topic, index)
    if registration is None:
        raise ValueError(f"no such partition: {topic}-{index}")
    replicas = registration.replicas
    if leader_id not in replicas:
        replicas = (leader_id, *replicas[1:])
    wanted = (leader_id, *(each for each in replicas if each != leader_id))
    await reassign(send, topic, index, wanted)

    def is_reassigned() -> bool:
        state = find(image(), topic, index)
        return state is not None and state.replicas == wanted and leader_id in state.isr

    await until(is_reassigned)
    await elect_preferred_leader(send, topic, index)


def find(image: MetadataImage, topic: str, partition: int) -> PartitionRegistration | None:
    """Find a partition in the metadata."""
    of_topic = image.topic(topic)
    return None if of_topic is None else of_topic.partitions.get(partition)


def leader_of(image: MetadataImage, topic: str, partition: int) -> int | None:
    """Return the leader of a partition; None if it is unknown."""
    registration = find(image, topic, partition)
    return None if registration is None else registration.leader


def is_led(image: MetadataImage, topic: str) -> bool:
    """Return whether a topic exists, and all of its partitions have leaders."""
    of_topic = image.topic(topic)
    return of_topic is not None and all(
        each.leader != NO_LEADER for each in of_topic.partitions.values()
    )
