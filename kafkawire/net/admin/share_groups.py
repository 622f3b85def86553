"""Share groups (KIP-932): their coordinator describes members and offsets, and changes offsets."""

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
from ...messages.share_group_describe_request import ShareGroupDescribeRequest
from ...messages.share_group_describe_response import Member, ShareGroupDescribeResponse
from .calls import CallRunner, check, check_group, coordinator, group_row
from .group_values import ShareGroupInfo, ShareGroupOffset, ShareMemberInfo
from .reassignments import by_topic


async def describe_group(calls: CallRunner, group_id: str) -> ShareGroupInfo:
    """Describe a group and its members."""
    row = await group_row(
        calls,
        group_id,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ShareGroupDescribeResponse,
        lambda _: ShareGroupDescribeRequest(group_ids=[group_id]),
        lambda response: response.groups,
    )
    check_group(row, group_id)
    return ShareGroupInfo(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        row.assignor_name,
        tuple(sorted(map(_member, row.members))),
    )


def _member(member: Member) -> ShareMemberInfo:
    return ShareMemberInfo(
        member.member_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.subscribed_topic_names)),
        tuple(
            sorted(
                (topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            )
        ),
    )


async def describe_offsets(
    calls: CallRunner, group_id: str
) -> dict[tuple[str, int], ShareGroupOffset]:
    """Return the offsets of a group, sorted by partition."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    described = await group_row(
        calls,
        group_id,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        DescribeShareGroupOffsetsResponse,
        lambda _: DescribeShareGroupOffsetsRequest(groups=[group]),
        lambda response: response.groups,
    )
    check_group(described, group_id)
    offsets: dict[tuple[str, int], ShareGroupOffset] = {}
    for topic in described.topics:
        for row in topic.partitions:
            where = (topic.topic_name, row.partition_index)
            check(row.error_code, f"{where[0]}-{where[1]}", row.error_message)
            if row.start_offset >= 0:
                offsets[where] = ShareGroupOffset(row.start_offset, row.leader_epoch, row.lag)
    return dict(sorted(offsets.items()))


async def alter_offsets(
    calls: CallRunner, group_id: str, offsets: Mapping[tuple[str, int], int]
) -> None:
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


async def delete_offsets(calls: CallRunner, group_id: str, names: Sequence[str]) -> None:
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
