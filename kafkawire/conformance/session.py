"""The connections and names of one check, and what it needs before it begins.

Everything on the broker has the prefix of the run in its name, and is deleted after the check.
"""

# over 300 lines: what all checks need first, and the cleaning up of just that

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple, TypeVar

from ..messages.api_key import ApiKey
from ..messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ..messages.create_topics_response import CreateTopicsResponse
from ..messages.delete_groups_request import DeleteGroupsRequest
from ..messages.delete_groups_response import DeleteGroupsResponse
from ..messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ..messages.delete_topics_response import DeleteTopicsResponse
from ..messages.describe_groups_request import DescribeGroupsRequest
from ..messages.describe_groups_response import DescribeGroupsResponse
from ..messages.describe_transactions_request import DescribeTransactionsRequest
from ..messages.describe_transactions_response import DescribeTransactionsResponse
from ..messages.find_coordinator_request import FindCoordinatorRequest
from ..messages.find_coordinator_response import FindCoordinatorResponse
from ..messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ..messages.list_offsets_response import ListOffsetsResponse
from ..messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ..messages.metadata_response import MetadataResponse, MetadataResponseTopic
from ..net.admin.calls import only
from ..net.brokers.recording import Recording
from ..primitives import ZERO_UUID, Message
from ..protocol.error_code import ErrorCode
from .behaviour import Deviation, api_name, expect_success
from .connection import Connection, Exchange, Target

LATEST: Final = -1
CONSUMER: Final = -1
"""Timestamp of the end of a partition; replica id of consumers."""
NO_NODE: Final = -1
GROUP: Final = 0
TRANSACTION: Final = 1
"""Types of coordinators."""
PAUSE_S: Final = 0.05
"""Time between attempts while the cluster changes."""
REPLICATION_FACTOR: Final = 1
NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors of a cluster in which something has just been created."""

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Topic(NamedTuple):
    """A topic of a check."""

    name: str
    id: bytes


@dataclass
class Names:
    """The names of a run: its prefix and a number."""

    prefix: str
    numbers: count[int] = field(default_factory=count)

    def new(self) -> str:
        return f"{self.prefix}-{next(self.numbers)}"


class Session:
    """What one check works with.

    versions: API -> the versions that both sides have.
    """

    def __init__(
        self,
        target: Target,
        bootstrap: tuple[str, int],
        versions: Mapping[ApiKey, range],
        names: Names,
        recording: Recording | None,
    ) -> None:
        self.versions = versions
        self._target = target
        self._bootstrap = bootstrap
        self._names = names
        self._recording = recording
        self._connections: dict[tuple[str, int], Connection] = {}
        self._others: list[Connection] = []
        self._topics: list[str] = []
        self._groups: list[str] = []

    @property
    def exchanges(self) -> list[Exchange]:
        """What was sent and received, by connection."""
        return [each for one in self.connections() for each in one.exchanges]

    def name(self) -> str:
        """Return a name that nothing else on the cluster has."""
        return self._names.new()

    def group(self) -> str:
        """Return the name of a group, which is deleted after the check."""
        name = self.name()
        self._groups.append(name)
        return name

    def newest(self, api: ApiKey, highest: int) -> int:
        """Return the newest version of an API up to one."""
        versions = self.versions.get(api, range(0))
        if not versions or versions.start > highest:
            raise Deviation(f"{api_name(api)} is not offered in a version up to {highest}")
        return min(versions[-1], highest)

    async def connection(self, address: tuple[str, int] | None = None) -> Connection:
        """Return the connection to a broker; None: the first."""
        where = address or self._bootstrap
        opened = self._connections.get(where)
        if opened is None:
            opened = await Connection.open(where, self._target, self._recording)
            self._connections[where] = opened
        return opened

    async def another(self, connection: Connection) -> Connection:
        """Open a connection more to the broker of one."""
        opened = await Connection.open(connection.address, self._target, self._recording)
        self._others.append(opened)
        return opened

    async def send(self, request: Message, version: int, kind: type[M]) -> M:
        """Send a request to the first broker."""
        return await (await self.connection()).send(request, version, kind)

    async def topic(
        self,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
        version: int | None = None,
    ) -> Topic:
        """Create a topic that keeps its records, and wait until its partitions have leaders.

        Without a limit of retention: the checks' records are old, and a broker with Kafka's
        default of a week deletes them when it next looks. version: of CreateTopics; None: the
        newest.
        """
        name = self.name()
        self._topics.append(name)
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=REPLICATION_FACTOR,
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in {"retention.ms": "-1", **(configs or {})}.items()
            ],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=self.timeout_ms)
        if version is None:
            version = self.newest(ApiKey.CREATE_TOPICS, 7)
        response = await self.send(request, version, CreateTopicsResponse)
        expect_success(only(response.topics, name).error_code, f"CreateTopics of {name}")
        described = await self.described(name)
        for each in described.partitions:
            await self._leads(name, each.partition_index)
        return Topic(name, described.topic_id)

    async def _leads(self, topic: str, partition: int) -> None:
        """Wait until the leader of a partition serves it."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=CONSUMER, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )

        async def attempt() -> tuple[int, None]:
            to = await self.leader(topic, partition)
            version = self.newest(ApiKey.LIST_OFFSETS, 9)
            response = await to.send(request, version, ListOffsetsResponse)
            return only(only(response.topics, topic).partitions, topic).error_code, None

        await self.settled(attempt, f"ListOffsets of {topic}-{partition}")

    async def described(self, name: str) -> MetadataResponseTopic:
        """Wait until the partitions of a topic have leaders; return its metadata."""

        async def attempt() -> tuple[int, MetadataResponseTopic]:
            topic = only((await self.metadata([name])).topics, name)
            codes = [topic.error_code, *(each.error_code for each in topic.partitions)]
            return next(filter(None, codes), 0), topic

        return await self.settled(attempt, f"Metadata of {name}")

    async def metadata(self, topics: Sequence[str]) -> MetadataResponse:
        """Return the metadata of topics, without creating them."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=each) for each in topics],
            allow_auto_topic_creation=False,
        )
        return await self.send(request, self.newest(ApiKey.METADATA, 12), MetadataResponse)

    async def leader(self, topic: str, partition: int = 0) -> Connection:
        """Return the connection to the leader of a partition."""
        metadata = await self.metadata([topic])
        partitions = only(metadata.topics, topic).partitions
        leaders = {each.partition_index: each.leader_id for each in partitions}
        addresses = {each.node_id: (each.host, each.port) for each in metadata.brokers}
        address = addresses.get(leaders.get(partition, NO_NODE))
        if address is None:
            raise Deviation(f"Metadata of {topic}: no leader of partition {partition}")
        return await self.connection(address)

    async def coordinator(self, key: str, kind: int = GROUP) -> Connection:
        """Return the connection to the coordinator of a group or a transactional id."""
        version = self.newest(ApiKey.FIND_COORDINATOR, 3)
        request = FindCoordinatorRequest(key=key, key_type=kind if version else 0)

        async def attempt() -> tuple[int, FindCoordinatorResponse]:
            response = await self.send(request, version, FindCoordinatorResponse)
            return response.error_code, response

        where = await self.settled(attempt, f"FindCoordinator of {key}")
        to = await self.connection((where.host, where.port))
        await self._coordinates(to, key, kind)
        return to

    async def _coordinates(self, to: Connection, key: str, kind: int) -> None:
        """Wait until a coordinator has loaded its partition."""

        async def group() -> tuple[int, None]:
            request = DescribeGroupsRequest(groups=[key])
            version = self.newest(ApiKey.DESCRIBE_GROUPS, 5)
            response = await to.send(request, version, DescribeGroupsResponse)
            return only(response.groups, key).error_code, None

        async def transaction() -> tuple[int, None]:
            request = DescribeTransactionsRequest(transactional_ids=[key])
            response = await to.send(request, 0, DescribeTransactionsResponse)
            code = only(response.transaction_states, key).error_code
            return 0 if code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND else code, None

        api, attempt = (
            (ApiKey.DESCRIBE_GROUPS, group)
            if kind == GROUP
            else (ApiKey.DESCRIBE_TRANSACTIONS, transaction)
        )
        if api in self.versions:
            await self.settled(attempt, f"{api_name(api)} of {key}")

    @property
    def timeout_ms(self) -> int:
        return int(self._target.timeout_s * 1000)

    async def settled(self, attempt: Callable[[], Awaitable[tuple[int, T]]], what: str) -> T:
        """Repeat a request while its error says that the cluster changes; return its response.

        attempt: returns the error code and the response. Raises Deviation for another error.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._target.timeout_s
        while True:
            code, response = await attempt()
            if code not in NOT_YET or loop.time() > deadline:
                expect_success(code, what)
                return response
            await asyncio.sleep(PAUSE_S)

    async def clean_up(self) -> list[str]:
        """Delete what was created, close the connections; return what could not be deleted."""
        left: list[str] = []
        try:
            left += await self._delete_topics()
            left += await self._delete_groups()
        finally:
            self.disconnect()
        return left

    def disconnect(self) -> None:
        """Close the connections; later requests open new ones."""
        for each in self.connections():
            each.close()
        self._connections.clear()
        self._others.clear()

    def connections(self) -> list[Connection]:
        """Return the connections that were opened."""
        return [*self._connections.values(), *self._others]

    async def _delete_topics(self) -> list[str]:
        if not self._topics:
            return []
        version = self.newest(ApiKey.DELETE_TOPICS, 6)
        request = DeleteTopicsRequest(timeout_ms=self.timeout_ms)
        if version >= 6:
            request.topics = [
                DeleteTopicState(name=each, topic_id=ZERO_UUID) for each in self._topics
            ]
        else:
            request.topic_names = self._topics
        response = await self.send(request, version, DeleteTopicsResponse)
        gone = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return [f"topic {each.name}" for each in response.responses if each.error_code not in gone]

    async def _delete_groups(self) -> list[str]:
        left: list[str] = []
        gone = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
        for group in self._groups:
            to = await self.coordinator(group)
            version = self.newest(ApiKey.DELETE_GROUPS, 2)
            request = DeleteGroupsRequest(groups_names=[group])
            response = await to.send(request, version, DeleteGroupsResponse)
            left += [
                f"group {each.group_id}" for each in response.results if each.error_code not in gone
            ]
        return left
