"""Groups: who is in them, and what they have committed.

Law: a group is its coordinator's business; only listing asks every broker.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from ...client.requests import Coordinator, CoordinatorKind
from ...messages.api_key import ApiKey
from ...messages.delete_groups_request import DeleteGroupsRequest
from ...messages.delete_groups_response import DeleteGroupsResponse
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from ...messages.list_groups_request import ListGroupsRequest
from ...messages.list_groups_response import ListGroupsResponse
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
from .calls import CallRunner, check
from .values import CommittedOffset, GroupInfo, GroupListing, MemberInfo

GROUPS_FROM: Final = 8
"""OffsetFetch asks for many groups from this version on (KIP-709)."""
LAST_WITH_NAMES: Final = 9
ALL_TOPICS_FROM: Final = 2


def coordinator(group_id: str) -> Coordinator:
    return Coordinator(CoordinatorKind.GROUP, group_id)


async def listed(asker: CallRunner, brokers: Iterable[int]) -> list[GroupListing]:
    """Ask every broker for the groups that it coordinates."""

    async def at(broker: int) -> list[GroupListing]:
        response = await asker.ask(
            broker,
            ApiKey.LIST_GROUPS,
            ListGroupsResponse,
            lambda _: ListGroupsRequest(),
            lambda answer: [answer.error_code],
        )
        check(response.error_code, f"groups of broker {broker}")
        return [
            GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
            for row in response.groups
        ]

    found = await asyncio.gather(*(at(broker) for broker in brokers))
    return sorted({row for rows in found for row in rows})


async def described(asker: CallRunner, group_id: str) -> GroupInfo:
    """Ask the coordinator who is in a group."""
    response = await asker.ask(
        coordinator(group_id),
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsResponse,
        lambda _: DescribeGroupsRequest(groups=[group_id]),
        lambda answer: [row.error_code for row in answer.groups],
    )
    (row,) = response.groups
    check(row.error_code, f"group {group_id}", row.error_message)
    return group_info(row)


def group_info(row: DescribedGroup) -> GroupInfo:
    """Take a group as its coordinator tells it."""
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


async def deleted(asker: CallRunner, group_id: str) -> None:
    """Have a group deleted."""
    response = await asker.ask(
        coordinator(group_id),
        ApiKey.DELETE_GROUPS,
        DeleteGroupsResponse,
        lambda _: DeleteGroupsRequest(groups_names=[group_id]),
        lambda answer: [row.error_code for row in answer.results],
    )
    for row in response.results:
        check(row.error_code, f"group {group_id}", row.error_message)


async def offsets(asker: CallRunner, group_id: str) -> dict[tuple[str, int], CommittedOffset]:
    """Ask for all committed offsets of a group."""

    def make(version: int) -> Message:
        if version >= GROUPS_FROM:
            return OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
            )
        return OffsetFetchRequest(group_id=group_id, topics=None)

    response = await asker.ask(
        coordinator(group_id),
        ApiKey.OFFSET_FETCH,
        OffsetFetchResponse,
        make,
        lambda answer: [answer.error_code, *(row.error_code for row in answer.groups)],
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
    """Give the partitions of either form of the response, with their topics."""
    for topic in response.topics:
        for partition in topic.partitions:
            yield topic.name, partition
    for group in response.groups:
        for grouped in group.topics:
            for each in grouped.partitions:
                yield grouped.name, each


async def forgotten(asker: CallRunner, group_id: str, partitions: list[tuple[str, int]]) -> None:
    """Have committed offsets deleted (KIP-496)."""
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=rows) for name, rows in by_topic.items()
    ]
    response = await asker.ask(
        coordinator(group_id),
        ApiKey.OFFSET_DELETE,
        OffsetDeleteResponse,
        lambda _: OffsetDeleteRequest(group_id=group_id, topics=topics),
        lambda answer: [answer.error_code],
    )
    check(response.error_code, f"group {group_id}")
    for told in response.topics:
        for row in told.partitions:
            check(row.error_code, f"{told.name}-{row.partition_index}")
