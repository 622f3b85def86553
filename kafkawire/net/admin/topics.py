"""Topics, their partitions and records, and the cluster's metadata.

Changes of topics go to the controller, offsets and deletions of records to the leader.
"""

from __future__ import annotations

from typing import Final

from ...client.admin.calls import LeaderOf
from ...client.requests import CONTROLLER, LEAST_LOADED
from ...messages.api_key import ApiKey
from ...messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from ...messages.create_partitions_response import CreatePartitionsResponse
from ...messages.create_topics_request import CreatableTopic, CreateTopicsRequest
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
from .calls import CallRunner, check, only
from .values import Offset, PartitionInfo, TopicInfo

TOPICS_BY_STATE_FROM: Final = 6
"""DeleteTopics has topics as structs from this version on."""
NULL_MEANS_ALL_FROM: Final = 1
"""Metadata: before this version, an empty list meant all topics."""
DEFAULTS_FROM: Final = 4
"""CreateTopics takes -1 for the broker's default from this version on (KIP-464)."""


async def create(
    calls: CallRunner, topic: CreatableTopic, timeout_ms: int, *, validate_only: bool
) -> None:
    """Create a topic."""
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=timeout_ms, validate_only=validate_only
    )
    defaults = -1 in (topic.num_partitions, topic.replication_factor)
    response = await calls.call(
        CONTROLLER,
        ApiKey.CREATE_TOPICS,
        CreateTopicsResponse,
        lambda _: request,
        lambda response: [row.error_code for row in response.topics],
        lowest=DEFAULTS_FROM if defaults else 1,
    )
    for row in response.topics:
        check(row.error_code, f"topic {row.name}", row.error_message)


async def delete(calls: CallRunner, name: str, timeout_ms: int) -> None:
    """Delete a topic."""

    def make(version: int) -> Message:
        if version >= TOPICS_BY_STATE_FROM:
            topics = [DeleteTopicState(name=name)]
            return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
        return DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)

    response = await calls.call(
        CONTROLLER,
        ApiKey.DELETE_TOPICS,
        DeleteTopicsResponse,
        make,
        lambda response: [row.error_code for row in response.responses],
    )
    for row in response.responses:
        check(row.error_code, f"topic {name}", row.error_message)


async def create_partitions(
    calls: CallRunner, name: str, count: int, timeout_ms: int, *, validate_only: bool
) -> None:
    """Increase the number of partitions of a topic to `count`."""
    rows = [CreatePartitionsTopic(name=name, count=count, assignments=None)]
    request = CreatePartitionsRequest(
        topics=rows, timeout_ms=timeout_ms, validate_only=validate_only
    )
    response = await calls.call(
        CONTROLLER,
        ApiKey.CREATE_PARTITIONS,
        CreatePartitionsResponse,
        lambda _: request,
        lambda response: [row.error_code for row in response.results],
    )
    for row in response.results:
        check(row.error_code, f"topic {row.name}", row.error_message)


async def metadata(calls: CallRunner, names: list[str] | None) -> MetadataResponse:
    """Return the metadata of topics and of the cluster; names: None is all topics."""

    def make(version: int) -> Message:
        if names is None and version < NULL_MEANS_ALL_FROM:
            return MetadataRequest(topics=[])
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)

    return await calls.call(
        LEAST_LOADED,
        ApiKey.METADATA,
        MetadataResponse,
        make,
        lambda response: [row.error_code for row in response.topics],
        lowest=1 if names == [] else 0,
    )


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


async def find_offset(calls: CallRunner, topic: str, partition: int, timestamp: int) -> Offset:
    """Look up the offset of one partition (ListOffsets)."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=topic, partitions=[wanted])]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    response = await calls.call(
        LeaderOf(topic, partition),
        ApiKey.LIST_OFFSETS,
        ListOffsetsResponse,
        lambda _: request,
        lambda response: [each.error_code for row in response.topics for each in row.partitions],
        lowest=1,
    )
    rows = (each for row in response.topics for each in row.partitions)
    partition_row = only(rows, f"{topic}-{partition}")
    check(partition_row.error_code, f"{topic}-{partition}")
    return Offset(partition_row.offset, partition_row.timestamp, partition_row.leader_epoch)


async def delete_records(
    calls: CallRunner, topic: str, partition: int, offset: int, timeout_ms: int
) -> int:
    """Delete the records before an offset; return the new log start offset."""
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=timeout_ms
    )
    response = await calls.call(
        LeaderOf(topic, partition),
        ApiKey.DELETE_RECORDS,
        DeleteRecordsResponse,
        lambda _: request,
        lambda response: [each.error_code for row in response.topics for each in row.partitions],
    )
    rows = (each for row in response.topics for each in row.partitions)
    partition_row = only(rows, f"{topic}-{partition}")
    check(partition_row.error_code, f"{topic}-{partition}")
    return partition_row.low_watermark
