"""Consumer groups: members and committed offsets.

A group's requests go to its coordinator; only list_groups goes to every broker.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...messages.api_key import ApiKey
from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeleteGroupsResponse
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from ...messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from ...messages.leave_group_response import LeaveGroupResponse
from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListGroupsResponse
from ...messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ...messages.offset_commit_response import OffsetCommitResponse
from ...messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ...messages.offset_delete_response import OffsetDeleteResponse
from ...messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from ...primitives import Message
from ...protocol.error_code import ErrorCode
from . import consumer_groups
from .calls import CallRunner, check, check_group, coordinator, group_row
from .group_values import (
    CommittedOffset,
    ConsumerGroupInfo,
    GroupInfo,
    GroupListing,
    MemberInfo,
)

GROUPS_FROM: Final = 8
"""OffsetFetch has several groups from this version on (KIP-709)."""
LAST_WITH_NAMES: Final = 9
"""The last version of OffsetFetch and OffsetCommit with topic names; then come ids."""
STATES_FILTER: Final = 4
"""ListGroups filters by state from this version on (KIP-518)."""
TYPES_FILTER: Final = 5
"""ListGroups filters by type from this version on (KIP-848)."""
MEMBERS_FROM: Final = 3
"""LeaveGroup has several members, and instance ids, from this version on (KIP-345)."""
CONSUMERS: Final = ("", consumer_groups.PROTOCOL_TYPE)
"""Protocol types of groups of consumers; "" of one that never had a member, or does not exist."""
ALL_TOPICS_FROM: Final = 2
LOWEST_COMMIT: Final = 2
"""OffsetCommit keeps offsets for the broker's retention time from this version on."""


async def list_groups(
    calls: CallRunner, brokers: Iterable[int], request: ListGroupsRequest
) -> list[GroupListing]:
    """List the groups of all brokers. request: has filters of states and types."""
    lowest = TYPES_FILTER if request.types_filter else STATES_FILTER if request.states_filter else 0

    async def on_broker(broker: int) -> list[GroupListing]:
        response = await calls.call(
            broker,
            ApiKey.LIST_GROUPS,
            ListGroupsResponse,
            lambda _: request,
            lambda response: [response.error_code],
            lowest=lowest,
        )
        check(response.error_code, f"groups of broker {broker}")
        return [
            GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
            for row in response.groups
        ]

    listings = await asyncio.gather(*(on_broker(broker) for broker in brokers))
    return sorted({row for rows in listings for row in rows})


async def describe_group(calls: CallRunner, group_id: str) -> GroupInfo:
    """Describe a group and its members."""
    row = await _describe_classic(calls, group_id)
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:  # or it is not a classic group
        described = await consumer_groups.describe(calls, group_id)
        if described is not None:
            return consumer_groups.group_info(described)
    check_group(row, group_id)
    return group_info(row)


async def describe_consumer_group(calls: CallRunner, group_id: str) -> ConsumerGroupInfo:
    """Describe a group of consumers of either protocol. BrokerError if it is of no consumers."""
    described = await consumer_groups.describe(calls, group_id)
    if described is not None:
        return consumer_groups.consumer_group_info(described)
    row = await _describe_classic(calls, group_id)
    check_group(row, group_id)
    if row.protocol_type not in CONSUMERS:
        detail = f"its protocol type is {row.protocol_type!r}"
        check(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}", detail)
    return consumer_groups.classic_group_info(group_info(row))


async def _describe_classic(calls: CallRunner, group_id: str) -> DescribedGroup:
    """Return the row of a group, errors included."""
    return await group_row(
        calls,
        group_id,
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsResponse,
        lambda _: DescribeGroupsRequest(groups=[group_id]),
        lambda response: response.groups,
    )


def group_info(row: DescribedGroup) -> GroupInfo:
    """Convert a group of a response."""
    members = tuple(
        MemberInfo(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            each.member_metadata,
            each.member_assignment,
        )
        for each in row.members
    )
    return GroupInfo(row.group_id, row.group_state, row.protocol_type, row.protocol_data, members)


async def delete_group(calls: CallRunner, group_id: str) -> None:
    """Delete a group."""
    response = await calls.call(
        coordinator(group_id),
        ApiKey.DELETE_GROUPS,
        DeleteGroupsResponse,
        lambda _: DeleteGroupsRequest(groups_names=[group_id]),
        lambda response: [row.error_code for row in response.results],
    )
    for row in response.results:
        check(row.error_code, f"group {group_id}", row.error_message)


async def list_offsets(calls: CallRunner, group_id: str) -> dict[tuple[str, int], CommittedOffset]:
    """Fetch all committed offsets of a group."""

    def make(version: int) -> Message:
        if version >= GROUPS_FROM:
            return OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
            )
        return OffsetFetchRequest(group_id=group_id, topics=None)

    response = await calls.call(
        coordinator(group_id),
        ApiKey.OFFSET_FETCH,
        OffsetFetchResponse,
        make,
        lambda response: [response.error_code, *(row.error_code for row in response.groups)],
        lowest=ALL_TOPICS_FROM,
        highest=LAST_WITH_NAMES,
    )
    check(response.error_code, f"group {group_id}")
    for group in response.groups:
        check(group.error_code, f"group {group_id}")
    return {
        (topic, row.partition_index): CommittedOffset(
            row.committed_offset, row.committed_leader_epoch, row.metadata or ""
        )
        for topic, row in rows(response)
        if row.committed_offset >= 0
    }


def rows(
    response: OffsetFetchResponse,
) -> Iterator[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]:
    """Iterate over the partitions of either form of the response, with their topics."""
    for topic in response.topics:
        for partition in topic.partitions:
            yield topic.name, partition
    for group in response.groups:
        for grouped in group.topics:
            for each in grouped.partitions:
                yield grouped.name, each


async def alter_offsets(
    calls: CallRunner, group_id: str, offsets: Mapping[tuple[str, int], int]
) -> None:
    """Commit offsets for a group without members, as a client that is none of them."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), offset in offsets.items():
        by_topic[topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
        )
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in by_topic.items()
    ]
    response = await calls.call(
        coordinator(group_id),
        ApiKey.OFFSET_COMMIT,
        OffsetCommitResponse,
        lambda _: OffsetCommitRequest(group_id=group_id, topics=topics),
        lambda response: [row.error_code for topic in response.topics for row in topic.partitions],
        lowest=LOWEST_COMMIT,
        highest=LAST_WITH_NAMES,
    )
    for topic_result in response.topics:
        for row in topic_result.partitions:
            check(row.error_code, f"{topic_result.name}-{row.partition_index}")


async def delete_offsets(
    calls: CallRunner, group_id: str, partitions: list[tuple[str, int]]
) -> None:
    """Delete committed offsets (KIP-496)."""
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=rows) for name, rows in by_topic.items()
    ]
    response = await calls.call(
        coordinator(group_id),
        ApiKey.OFFSET_DELETE,
        OffsetDeleteResponse,
        lambda _: OffsetDeleteRequest(group_id=group_id, topics=topics),
        lambda response: [response.error_code],
    )
    check(response.error_code, f"group {group_id}")
    for topic_result in response.topics:
        for row in topic_result.partitions:
            check(row.error_code, f"{topic_result.name}-{row.partition_index}")


async def remove_members(
    calls: CallRunner,
    group_id: str,
    member_ids: list[str],
    instance_ids: list[str],
    reason: str,
) -> None:
    """Remove members from a group (LeaveGroup), as its administrator."""
    members = [MemberIdentity(member_id=name, reason=reason) for name in member_ids]
    members += [
        MemberIdentity(member_id="", group_instance_id=name, reason=reason) for name in instance_ids
    ]
    response = await calls.call(
        coordinator(group_id),
        ApiKey.LEAVE_GROUP,
        LeaveGroupResponse,
        lambda _: LeaveGroupRequest(group_id=group_id, members=members),
        lambda response: [response.error_code],
        lowest=MEMBERS_FROM,
    )
    check(response.error_code, f"group {group_id}")
    for member in response.members:
        check(member.error_code, f"member {member.group_instance_id or member.member_id}")
