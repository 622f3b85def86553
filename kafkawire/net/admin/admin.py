"""The admin client: topics, partitions, configurations, the cluster; groups are in `groups.py`.

Law: each call is one request to the broker that is responsible.

    async with Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        await admin.create_topic("orders", partitions=3)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from ...client.admin.calls import LeaderOf
from ...client.arguments import (
    INT16,
    INT32,
    INT64,
    settings,
    text,
    topic_name,
    topic_names,
    topic_partition,
    topic_partitions,
    whole,
)
from ...client.config import CLIENT_KEYS, MILLISECONDS, Key, Setting, read_config, seconds
from ...client.failures import ClientClosed
from ...client.requests import CONTROLLER, LEAST_LOADED
from ...messages.api_key import ApiKey
from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import CreatePartitionsResponse
from ...messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ...messages.create_topics_response import CreateTopicsResponse
from ...messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ...messages.delete_records_response import DeleteRecordsResponse
from ...messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from ...messages.delete_topics_response import DeleteTopicsResponse
from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ...messages.list_offsets_response import ListOffsetsResponse
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import MetadataResponse, MetadataResponseTopic
from ...primitives import Message
from ..scoped import Scoped
from . import configs, groups
from .calls import CallRunner, check
from .values import (
    BrokerInfo,
    ClusterInfo,
    CommittedOffset,
    ConfigEntry,
    GroupInfo,
    GroupListing,
    Offset,
    PartitionInfo,
    TopicInfo,
)

ADMIN_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "default.api.timeout.ms": Key(
        MILLISECONDS, 60_000, "how long a call may take, including retries"
    ),
}
TOPICS_BY_STATE_FROM: Final = 6
"""DeleteTopics has topics as structs from this version on."""
NULL_MEANS_ALL_FROM: Final = 1
"""Metadata: before this version, an empty list meant all topics."""
DEFAULTS_FROM: Final = 4
"""CreateTopics takes -1 for the broker's default from this version on (KIP-464)."""


class Admin(Scoped):
    """Inspects and changes a cluster. Configured under Kafka's names, `ADMIN_KEYS`.

    Every call raises BrokerError for a broker's error, RequestFailed without a response within
    default.api.timeout.ms, ClientClosed, and InvalidValue or OutOfRange for an argument of a wrong
    type or out of range; then nothing was sent.
    """

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(ADMIN_KEYS, config)
        self._timeout_ms = round(seconds(self._values, "request.timeout.ms") * 1000)
        self._runner: CallRunner | None = None

    async def start(self) -> None:
        """Start to connect; `async with` calls it."""
        self._runner = CallRunner(self._values)

    async def close(self) -> None:
        """Close; pending calls fail with ClientClosed."""
        calls, self._runner = self._runner, None
        if calls is not None:
            await calls.close()

    @property
    def _calls(self) -> CallRunner:
        if self._runner is None:
            raise ClientClosed("the admin client")
        return self._runner

    # Topics.

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 means the broker's default."""
        topic = CreatableTopic(
            name=topic_name(name, "name"),
            num_partitions=whole(partitions, "partitions", -1, INT32),
            replication_factor=whole(replication_factor, "replication_factor", -1, INT16),
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in settings(configs or {}, "configs").items()
            ],
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=self._timeout_ms, validate_only=validate_only
        )
        response = await self._calls.call(
            CONTROLLER,
            ApiKey.CREATE_TOPICS,
            CreateTopicsResponse,
            lambda _: request,
            lambda response: [row.error_code for row in response.topics],
            lowest=DEFAULTS_FROM if -1 in (partitions, replication_factor) else 1,
        )
        for row in response.topics:
            check(row.error_code, f"topic {row.name}", row.error_message)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and all its records."""
        name = topic_name(name, "name")

        def make(version: int) -> Message:
            if version >= TOPICS_BY_STATE_FROM:
                topics = [DeleteTopicState(name=name)]
                return DeleteTopicsRequest(topics=topics, timeout_ms=self._timeout_ms)
            return DeleteTopicsRequest(topic_names=[name], timeout_ms=self._timeout_ms)

        response = await self._calls.call(
            CONTROLLER,
            ApiKey.DELETE_TOPICS,
            DeleteTopicsResponse,
            make,
            lambda response: [row.error_code for row in response.responses],
        )
        for row in response.responses:
            check(row.error_code, f"topic {name}", row.error_message)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Increase the number of partitions of a topic to `count`."""
        name, number = topic_name(topic), whole(count, "count", 1, INT32)
        rows = [CreatePartitionsTopic(name=name, count=number, assignments=None)]
        request = CreatePartitionsRequest(topics=rows, timeout_ms=self._timeout_ms)
        response = await self._calls.call(
            CONTROLLER,
            ApiKey.CREATE_PARTITIONS,
            CreatePartitionsResponse,
            lambda _: request,
            lambda response: [row.error_code for row in response.results],
        )
        for row in response.results:
            check(row.error_code, f"topic {row.name}", row.error_message)

    async def list_topics(self) -> list[str]:
        """List the topics of the cluster, internal ones too, sorted."""
        response = await self._metadata(None)
        return sorted(row.name for row in response.topics if row.name is not None)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Describe topics; BrokerError for the first unknown one."""
        response = await self._metadata(list(topic_names(names, "names")))
        for row in response.topics:
            check(row.error_code, f"topic {row.name}")
        return {row.name: topic_info(row) for row in response.topics if row.name is not None}

    async def describe_cluster(self) -> ClusterInfo:
        """Describe the brokers, the controller and the cluster's id."""
        response = await self._metadata([])
        brokers = tuple(
            BrokerInfo(row.node_id, row.host, row.port, row.rack) for row in response.brokers
        )
        return ClusterInfo(response.cluster_id, response.controller_id, brokers)

    async def _metadata(self, names: list[str] | None) -> MetadataResponse:
        def make(version: int) -> Message:
            if names is None and version < NULL_MEANS_ALL_FROM:
                return MetadataRequest(topics=[])
            topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
            return MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)

        return await self._calls.call(
            LEAST_LOADED,
            ApiKey.METADATA,
            MetadataResponse,
            make,
            lambda response: [row.error_code for row in response.topics],
            lowest=1 if names == [] else 0,
        )

    # Records.

    async def list_offsets(
        self, partitions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], Offset]:
        """Look up offsets: (topic, partition) -> EARLIEST, LATEST, or a timestamp.

        A timestamp, in milliseconds, finds the first record not older.
        """
        times = {
            topic_partition(where): whole(timestamp, "timestamp", -INT64 - 1, INT64)
            for where, timestamp in partitions.items()
        }
        found = await asyncio.gather(
            *(self._offset(*where, timestamp) for where, timestamp in times.items())
        )
        return dict(zip(times, found, strict=True))

    async def _offset(self, topic: str, partition: int, timestamp: int) -> Offset:
        row = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topics = [ListOffsetsTopic(name=topic, partitions=[row])]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        response = await self._calls.call(
            LeaderOf(topic, partition),
            ApiKey.LIST_OFFSETS,
            ListOffsetsResponse,
            lambda _: request,
            lambda response: [
                each.error_code for row in response.topics for each in row.partitions
            ],
            lowest=1,
        )
        (found,) = (each for row in response.topics for each in row.partitions)
        check(found.error_code, f"{topic}-{partition}")
        return Offset(found.offset, found.timestamp, found.leader_epoch)

    async def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset (-1: all); return the new log start offset."""
        topic, partition = topic_partition((topic, partition))
        offset = whole(before, "before", -1, INT64)
        row = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=self._timeout_ms
        )
        response = await self._calls.call(
            LeaderOf(topic, partition),
            ApiKey.DELETE_RECORDS,
            DeleteRecordsResponse,
            lambda _: request,
            lambda response: [
                each.error_code for row in response.topics for each in row.partitions
            ],
        )
        (found,) = (each for row in response.topics for each in row.partitions)
        check(found.error_code, f"{topic}-{partition}")
        return found.low_watermark

    # Configurations.

    async def describe_topic_config(self, topic: str) -> dict[str, ConfigEntry]:
        """Describe a topic's configuration, by name."""
        return await configs.describe(self._calls, configs.TOPIC, topic_name(topic))

    async def describe_broker_config(self, broker_id: int) -> dict[str, ConfigEntry]:
        """Describe a broker's configuration, by name."""
        name = str(whole(broker_id, "broker_id", 0, INT32))
        return await configs.describe(self._calls, configs.BROKER, name)

    async def alter_topic_config(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Alter a topic's configuration; None resets a value to its default."""
        checked = settings(changes, "changes")
        await configs.alter(self._calls, configs.TOPIC, topic_name(topic), checked)

    # Groups.

    async def list_groups(self) -> list[GroupListing]:
        """List the groups of all brokers, sorted by id."""
        brokers = (await self.describe_cluster()).brokers
        return await groups.list_groups(self._calls, [broker.broker_id for broker in brokers])

    async def describe_group(self, group_id: str) -> GroupInfo:
        """Describe a group (of the classic protocol)."""
        return await groups.describe_group(self._calls, text(group_id, "group_id"))

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members, and its offsets."""
        await groups.delete_group(self._calls, text(group_id, "group_id"))

    async def group_offsets(self, group_id: str) -> dict[tuple[str, int], CommittedOffset]:
        """Return the committed offsets of a group, by (topic, partition)."""
        return await groups.list_offsets(self._calls, text(group_id, "group_id"))

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> None:
        """Delete committed offsets of partitions that a group is not subscribed to."""
        checked = list(topic_partitions(partitions))
        await groups.delete_offsets(self._calls, text(group_id, "group_id"), checked)


def topic_info(row: MetadataResponseTopic) -> TopicInfo:
    """Convert a topic of a response."""
    partitions = tuple(
        PartitionInfo(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
        )
        for each in sorted(row.partitions, key=lambda each: each.partition_index)
    )
    return TopicInfo(row.name or "", row.topic_id, row.is_internal, partitions)
