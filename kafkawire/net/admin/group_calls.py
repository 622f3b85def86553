"""The calls of an admin client about groups: members, committed offsets, those of share groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.arguments import INT64, text, topic_names, topic_partition, topic_partitions, whole
from ...messages.list_groups_request import ListGroupsRequest
from . import groups, share_groups
from .session import AdminSession
from .values import CommittedOffset, GroupInfo, GroupListing, ShareGroupOffset


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
            states_filter=[text(each, "states") for each in states],
            types_filter=[text(each, "types") for each in types],
        )
        return await groups.list_groups(self._calls, await self._brokers(), request)

    async def describe_group(self, group_id: str) -> GroupInfo:
        """Describe a group (of the classic protocol)."""
        return await groups.describe_group(self._calls, text(group_id, "group_id"))

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
            [text(name, "member_ids") for name in member_ids],
            [text(name, "instance_ids") for name in instance_ids],
            text(reason, "reason"),
        )

    async def share_group_offsets(self, group_id: str) -> dict[tuple[str, int], ShareGroupOffset]:
        """Return where a share group is in each partition that it has read from."""
        return await share_groups.describe(self._calls, text(group_id, "group_id"))

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[tuple[str, int], int]
    ) -> None:
        """Set start offsets, (topic, partition) -> offset, of a share group without members."""
        checked = _checked(offsets)
        await share_groups.alter(self._calls, text(group_id, "group_id"), checked)

    async def delete_share_group_offsets(self, group_id: str, topics: Iterable[str]) -> None:
        """Delete the offsets in topics of a share group without members."""
        names = list(topic_names(topics))
        await share_groups.delete(self._calls, text(group_id, "group_id"), names)


def _checked(offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Return offsets of partitions. Raises InvalidValue, OutOfRange."""
    return {
        topic_partition(where): whole(offset, "offset", 0, INT64)
        for where, offset in offsets.items()
    }
