"""The calls of an admin client about groups: members, epochs, offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from ...client.arguments import (
    INT64,
    text,
    texts,
    topic_names,
    topic_partition,
    topic_partitions,
    whole,
)
from ...messages.list_groups_request import ListGroupsRequest
from . import groups, share_groups, streams_groups
from .calls import CallRunner
from .group_values import (
    CommittedOffset,
    ConsumerGroupInfo,
    GroupInfo,
    GroupListing,
    ShareGroupInfo,
    ShareGroupOffset,
    StreamsGroupInfo,
)
from .session import AdminSession

G = TypeVar("G")


class GroupCalls(AdminSession):
    """Describes and changes groups."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[GroupListing]:
        """List the groups of all brokers, sorted by id.

        states: only those in such states, e.g. Stable, from brokers of 2.6 on (KIP-518). types:
        only such groups, e.g. consumer or classic, from brokers of 3.8 on (KIP-848).
        """
        request = ListGroupsRequest(
            states_filter=list(texts(states, "states")),
            types_filter=list(texts(types, "types")),
        )
        return await groups.list_groups(self._calls, await self._brokers(), request)

    async def describe_group(self, group_id: str) -> GroupInfo:
        """Describe a group (of the classic protocol)."""
        return await groups.describe_group(self._calls, text(group_id, "group_id"))

    async def describe_consumer_groups(
        self, group_ids: Iterable[str]
    ) -> dict[str, ConsumerGroupInfo]:
        """Describe groups of consumers, by id, those of the classic protocol too (KIP-848)."""
        return await self._described(group_ids, groups.describe_consumer_group)

    async def describe_streams_groups(
        self, group_ids: Iterable[str], *, include_topology_description: bool = False
    ) -> dict[str, StreamsGroupInfo]:
        """Describe Streams groups, by id: their topologies, epochs and members (KIP-1071).

        include_topology_description: also the graph of each topology, from brokers of 4.4 on that
        have a plugin which stores it (KIP-1331).
        """

        def describe(calls: CallRunner, group_id: str) -> Awaitable[StreamsGroupInfo]:
            return streams_groups.describe_group(calls, group_id, include_topology_description)

        return await self._described(group_ids, describe)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members, and its offsets."""
        await groups.delete_group(self._calls, text(group_id, "group_id"))

    async def group_offsets(self, group_id: str) -> dict[tuple[str, int], CommittedOffset]:
        """Return the committed offsets of a group, by (topic, partition)."""
        return await groups.list_offsets(self._calls, text(group_id, "group_id"))

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Set committed offsets, (topic, partition) -> offset, of a group without members."""
        checked = _checked(offsets)
        await groups.alter_offsets(self._calls, text(group_id, "group_id"), checked)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> None:
        """Delete committed offsets of partitions that a group is not subscribed to."""
        checked = list(topic_partitions(partitions))
        await groups.delete_offsets(self._calls, text(group_id, "group_id"), checked)

    async def remove_members_from_group(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] = (),
        instance_ids: Iterable[str] = (),
        reason: str = "",
    ) -> None:
        """Remove members from a classic group: by their ids, static ones by their instance ids.

        BrokerError for the first that is not in the group. reason: for the broker's log.
        """
        await groups.remove_members(
            self._calls,
            text(group_id, "group_id"),
            list(texts(member_ids, "member_ids")),
            list(texts(instance_ids, "instance_ids")),
            text(reason, "reason"),
        )

    async def describe_share_groups(self, group_ids: Iterable[str]) -> dict[str, ShareGroupInfo]:
        """Describe share groups, by id: their epochs and members (KIP-932)."""
        return await self._described(group_ids, share_groups.describe_group)

    async def share_group_offsets(self, group_id: str) -> dict[tuple[str, int], ShareGroupOffset]:
        """Return where a share group is in each partition that it has read from."""
        return await share_groups.describe_offsets(self._calls, text(group_id, "group_id"))

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Set start offsets, (topic, partition) -> offset, of a share group without members."""
        checked = _checked(offsets)
        await share_groups.alter_offsets(self._calls, text(group_id, "group_id"), checked)

    async def delete_share_group_offsets(self, group_id: str, topics: Iterable[str]) -> None:
        """Delete the offsets in topics of a share group without members."""
        names = list(topic_names(topics))
        await share_groups.delete_offsets(self._calls, text(group_id, "group_id"), names)

    async def _described(
        self, group_ids: Iterable[str], describe: Callable[[CallRunner, str], Awaitable[G]]
    ) -> dict[str, G]:
        """Describe groups at once; raise what the first fails with."""
        ids = list(dict.fromkeys(texts(group_ids, "group_ids")))
        described = await asyncio.gather(*(describe(self._calls, group_id) for group_id in ids))
        return dict(zip(ids, described, strict=True))


def _checked(offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Return offsets of partitions. Raises InvalidValue, OutOfRange."""
    return {
        topic_partition(where): whole(offset, "offset", 0, INT64)
        for where, offset in offsets.items()
    }
