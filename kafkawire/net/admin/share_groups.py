"""Offsets of share groups (KIP-932), which their coordinator describes, sets and deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ...messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from ...messages.api_key import ApiKey
from ...messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ...messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from ...messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ...messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from .calls import CallRunner, check, only
from .groups import coordinator
from .reassignments import by_topic
from .values import ShareGroupOffset


async def describe(calls: CallRunner, group_id: str) -> dict[tuple[str, int], ShareGroupOffset]:
    """Return the offsets of a group, sorted by partition."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    response = await calls.call(
        coordinator(group_id),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        DescribeShareGroupOffsetsResponse,
        lambda _: DescribeShareGroupOffsetsRequest(groups=[group]),
        lambda response: [row.error_code for row in response.groups],
    )
    described = only(response.groups, f"group {group_id}")
    check(described.error_code, f"group {group_id}", described.error_message)
    offsets: dict[tuple[str, int], ShareGroupOffset] = {}
    for topic in described.topics:
        for row in topic.partitions:
            where = (topic.topic_name, row.partition_index)
            check(row.error_code, f"{where[0]}-{where[1]}", row.error_message)
            if row.start_offset >= 0:
                offsets[where] = ShareGroupOffset(row.start_offset, row.leader_epoch, row.lag)
    return dict(sorted(offsets.items()))


async def alter(calls: CallRunner, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Set start offsets. BrokerError for the first partition that is refused."""
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=index, start_offset=offsets[name, index]
                )
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets).items()
    ]
    response = await calls.call(
        coordinator(group_id),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        AlterShareGroupOffsetsResponse,
        lambda _: AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"group {group_id}", response.error_message)
    for topic in response.responses:
        for row in topic.partitions:
            check(row.error_code, f"{topic.topic_name}-{row.partition_index}", row.error_message)


async def delete(calls: CallRunner, group_id: str, names: Sequence[str]) -> None:
    """Delete offsets. BrokerError for the first topic that is refused."""
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    response = await calls.call(
        coordinator(group_id),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        DeleteShareGroupOffsetsResponse,
        lambda _: DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"group {group_id}", response.error_message)
    for topic in response.responses:
        check(topic.error_code, f"topic {topic.topic_name}", topic.error_message)
