"""The topics of a cluster of nodes, as its operator sees and changes them.

Changes are requests to the controller; they are done when all nodes know of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
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
from ..fixture import POLL
from ..partitions import NewTopic

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


class ClusterTopics:
    """The topics of a cluster.

    images: returns the metadata of all nodes that reach each other. is_published: returns whether
    their replicas have it, too.
    """

    def __init__(
        self,
        send: Send,
        images: Callable[[], Iterable[MetadataImage]],
        is_published: Callable[[], bool],
    ) -> None:
        self._send = send
        self._images = images
        self._is_published = is_published

    # -- what there is

    def image(self) -> MetadataImage:
        """Return the newest metadata."""
        return max(self._images(), key=lambda each: each.offset, default=MetadataImage())

    def find(self, topic: str, partition: int) -> PartitionRegistration | None:
        """Find a partition in the newest metadata."""
        return _partition(self.image(), topic, partition)

    # -- changes; they raise BrokerError

    async def create(self, topic: NewTopic) -> None:
        """Create a topic; returns when all of its partitions are led."""
        configs = topic.configs.items()
        creatable = CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=DEFAULT_FACTOR if topic.factor is None else topic.factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
        )
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=TIMEOUT_MS)
        response = await _exchange(self._send, request, CreateTopicsResponse)
        for result in response.topics:
            _check(result.error_code, topic.name, result.error_message)
        await until(lambda: self._is_led(topic.name))

    def _is_led(self, topic: str) -> bool:
        return all(_has_leaders(image, topic) for image in self._images()) and self._is_published()

    async def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Reassign a partition so that a broker is its preferred leader, and elect it.

        ValueError if there is no such partition.
        """
        registration = self.find(topic, partition)
        if registration is None:
            raise ValueError(f"no such partition: {topic}-{partition}")
        replicas = registration.replicas
        if leader_id not in replicas:
            replicas = (leader_id, *replicas[1:])
        wanted = (leader_id, *(each for each in replicas if each != leader_id))
        await self._reassign(topic, partition, wanted)

        def is_reassigned() -> bool:
            state = self.find(topic, partition)
            return state is not None and state.replicas == wanted and leader_id in state.isr

        def is_elected(image: MetadataImage) -> bool:
            state = _partition(image, topic, partition)
            return state is not None and state.leader == leader_id

        await until(is_reassigned)
        await self._elect_preferred_leader(topic, partition)
        await until(lambda: all(map(is_elected, self._images())))

    async def _reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Begin to move a partition to these replicas, the preferred leader first."""
        wanted = ReassignablePartition(partition_index=partition, replicas=[*replicas])
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[wanted])], timeout_ms=TIMEOUT_MS
        )
        response = await _exchange(self._send, request, AlterPartitionReassignmentsResponse)
        _check(response.error_code, topic, response.error_message)
        for result in response.responses[0].partitions:
            _check(result.error_code, f"{topic}-{partition}", result.error_message)

    async def _elect_preferred_leader(self, topic: str, partition: int) -> None:
        """Let the first replica lead a partition, if it does not yet."""
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED,
            topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])],
            timeout_ms=TIMEOUT_MS,
        )
        response = await _exchange(self._send, request, ElectLeadersResponse)
        _check(response.error_code, topic, None)
        for result in response.replica_election_results[0].partition_result:
            if result.error_code not in ELECTED:
                _check(result.error_code, f"{topic}-{partition}", result.error_message)


async def until(done: Callable[[], bool]) -> None:
    """Wait until a function returns true."""
    while not done():
        await asyncio.sleep(POLL)


def _partition(image: MetadataImage, topic: str, partition: int) -> PartitionRegistration | None:
    of_topic = image.topic(topic)
    return None if of_topic is None else of_topic.partitions.get(partition)


def _has_leaders(image: MetadataImage, topic: str) -> bool:
    """Whether a topic exists, and all of its partitions have leaders."""
    of_topic = image.topic(topic)
    return of_topic is not None and all(
        each.leader != NO_LEADER for each in of_topic.partitions.values()
    )
