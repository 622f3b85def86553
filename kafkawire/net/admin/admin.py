"""The admin client: topics, partitions, configurations, the cluster; groups are in `groups.py`.

Law: each call is one question to the broker whose business it is.

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
        MILLISECONDS, 60_000, "how long a call may take, retries and all"
    ),
}
TOPICS_BY_STATE_FROM: Final = 6
"""DeleteTopics names topics in structs from this version on."""
NULL_MEANS_ALL_FROM: Final = 1
"""Metadata: before, no topics meant all."""
DEFAULTS_FROM: Final = 4
"""CreateTopics takes -1 for the broker's default from this version on (KIP-464)."""


class Admin(Scoped):
    """Asks and changes what a cluster has. Settings under Kafka's names, `ADMIN_KEYS`.

    Every call raises BrokerError where a broker refuses, RequestFailed where there is no answer
    within default.api.timeout.ms, ClientClosed, and InvalidValue or OutOfRange for an argument of a
    wrong type or out of range; then nothing was sent.
    """

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(ADMIN_KEYS, config)
        self._timeout_ms = round(seconds(self._values, "request.timeout.ms") * 1000)
        self._asking: CallRunner | None = None

    async def start(self) -> None:
        """Begin to connect; `async with` does it."""
        self._asking = CallRunner(self._values)

    async def close(self) -> None:
        """End; calls that wait fail with ClientClosed."""
        asker, self._asking = self._asking, None
        if asker is not None:
            await asker.close()

    @property
    def _asker(self) -> CallRunner:
        if self._asking is None:
            raise ClientClosed("the admin client")
        return self._asking

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
        """Create a topic; -1 leaves a number to the broker."""
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
        response = await self._asker.ask(
            CONTROLLER,
            ApiKey.CREATE_TOPICS,
            CreateTopicsResponse,
            lambda _: request,
            lambda answer: [row.error_code for row in answer.topics],
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

        response = await self._asker.ask(
            CONTROLLER,
            ApiKey.DELETE_TOPICS,
            DeleteTopicsResponse,
            make,
            lambda answer: [row.error_code for row in answer.responses],
        )
        for row in response.responses:
            check(row.error_code, f"topic {name}", row.error_message)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Let a topic have `count` partitions in all, more than it has."""
        name, number = topic_name(topic), whole(count, "count", 1, INT32)
        rows = [CreatePartitionsTopic(name=name, count=number, assignments=None)]
        request = CreatePartitionsRequest(topics=rows, timeout_ms=self._timeout_ms)
        response = await self._asker.ask(
            CONTROLLER,
            ApiKey.CREATE_PARTITIONS,
            CreatePartitionsResponse,
            lambda _: request,
            lambda answer: [row.error_code for row in answer.results],
        )
        for row in response.results:
            check(row.error_code, f"topic {row.name}", row.error_message)

    async def list_topics(self) -> list[str]:
        """Name the topics of the cluster, internal ones too, sorted."""
        response = await self._metadata(None)
        return sorted(row.name for row in response.topics if row.name is not None)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Describe topics; BrokerError for the first that is not there."""
        response = await self._metadata(list(topic_names(names, "names")))
        for row in response.topics:
            check(row.error_code, f"topic {row.name}")
        return {row.name: topic_info(row) for row in response.topics if row.name is not None}

    async def describe_cluster(self) -> ClusterInfo:
        """Tell the brokers, the controller and the cluster's id."""
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

        return await self._asker.ask(
            LEAST_LOADED,
            ApiKey.METADATA,
            MetadataResponse,
            make,
            lambda answer: [row.error_code for row in answer.topics],
            lowest=1 if names == [] else 0,
        )

    # Records.

    async def list_offsets(
        self, partitions: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], Offset]:
        """Find offsets: (topic, partition) -> EARLIEST, LATEST, or the timestamp in milliseconds
        from which on a record is wanted.
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
        response = await self._asker.ask(
            LeaderOf(topic, partition),
            ApiKey.LIST_OFFSETS,
            ListOffsetsResponse,
            lambda _: request,
            lambda answer: [each.error_code for row in answer.topics for each in row.partitions],
            lowest=1,
        )
        (found,) = (each for row in response.topics for each in row.partitions)
        check(found.error_code, f"{topic}-{partition}")
        return Offset(found.offset, found.timestamp, found.leader_epoch)

    async def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset (-1: all); give where the log begins then."""
        topic, partition = topic_partition((topic, partition))
        offset = whole(before, "before", -1, INT64)
        row = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=self._timeout_ms
        )
        response = await self._asker.ask(
            LeaderOf(topic, partition),
            ApiKey.DELETE_RECORDS,
            DeleteRecordsResponse,
            lambda _: request,
            lambda answer: [each.error_code for row in answer.topics for each in row.partitions],
        )
        (found,) = (each for row in response.topics for each in row.partitions)
        check(found.error_code, f"{topic}-{partition}")
        return found.low_watermark

    # Configurations.

    async def describe_topic_config(self, topic: str) -> dict[str, ConfigEntry]:
        """Tell the settings of a topic by name."""
        return await configs.describe(self._asker, configs.TOPIC, topic_name(topic))

    async def describe_broker_config(self, broker_id: int) -> dict[str, ConfigEntry]:
        """Tell the settings of a broker by name."""
        name = str(whole(broker_id, "broker_id", 0, INT32))
        return await configs.describe(self._asker, configs.BROKER, name)

    async def alter_topic_config(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set settings of a topic; None goes back to the default."""
        checked = settings(changes, "changes")
        await configs.alter(self._asker, configs.TOPIC, topic_name(topic), checked)

    # Groups.

    async def list_groups(self) -> list[GroupListing]:
        """List the groups of all brokers, sorted by id."""
        brokers = (await self.describe_cluster()).brokers
        return await groups.listed(self._asker, [broker.broker_id for broker in brokers])

    async def describe_group(self, group_id: str) -> GroupInfo:
        """Describe a group (of the classic protocol)."""
        return await groups.described(self._asker, text(group_id, "group_id"))

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members, and its offsets."""
        await groups.deleted(self._asker, text(group_id, "group_id"))

    async def group_offsets(self, group_id: str) -> dict[tuple[str, int], CommittedOffset]:
        """Tell what a group has committed, by (topic, partition)."""
        return await groups.offsets(self._asker, text(group_id, "group_id"))

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> None:
        """Forget what a group has committed for partitions that it is not subscribed to."""
        checked = list(topic_partitions(partitions))
        await groups.forgotten(self._asker, text(group_id, "group_id"), checked)


def topic_info(row: MetadataResponseTopic) -> TopicInfo:
    """Take a topic as a broker tells it."""
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
