"""Reads what a list of a live cluster named, and leaves out what was deleted meanwhile.

Only errors that say that a group, topic or partition does not exist are left out; what a user
named is read without these functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, GroupInfo, Offset

Partition = tuple[str, int]

T = TypeVar("T")

DEAD = "Dead"
"""The state of a group that does not exist, for DescribeGroups before version 6 (KIP-1043)."""


async def if_exists(value: Awaitable[T]) -> T | None:
    """Await a value; None if the broker responds that its group, topic or partition is unknown."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    try:
        return await value
    except BrokerError as error:
        if error.code in (
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ):
            return None
        raise


async def existing_group(admin: Admin, group_id: str) -> GroupInfo | None:
    """Describe a group; None if it was deleted."""
    info = await if_exists(admin.describe_group(group_id))
    return None if info is None or info.state == DEAD else info


async def existing_offsets(
    admin: Admin, partitions: Mapping[Partition, int]
) -> dict[Partition, Offset]:
    """Look up offsets as `Admin.list_offsets`, of the partitions that exist."""
    each = [if_exists(admin.list_offsets({where: at})) for where, at in partitions.items()]
    from asyncio import gather  # verbs that read captures do without

    result: dict[Partition, Offset] = {}
    for offsets in await gather(*each):
        result |= offsets or {}
    return result
