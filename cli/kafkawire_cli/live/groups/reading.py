"""Reads groups of a live cluster: members, epochs and offsets, of each type of group.

A group that is deleted while it is read is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ...input.existing import DEAD, existing_group, existing_offsets, if_exists

if TYPE_CHECKING:
    from kafkawire.net.admin import (
        Admin,
        ConsumerGroupInfo,
        ConsumerMemberInfo,
        GroupInfo,
        GroupListing,
        ShareGroupInfo,
        ShareMemberInfo,
        StreamsGroupInfo,
        StreamsMemberInfo,
        StreamsTasks,
        Subtopology,
        TopologyDescription,
    )

CONSUMERS: Final = "consumer"
"""The protocol type of groups of consumers, and the type of those of KIP-848."""
SHARE: Final = "share"
ASSIGNED: Final = "assigned"
Numbers = dict[str, list[int]]
"""Partitions by topic, or by subtopology."""


class Member(NamedTuple):
    """A member. epoch: None in a classic group; process_id: of a Streams group, else empty.

    assignment: what it has, by kind: `assigned` partitions, or a key for each kind of tasks.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    epoch: int | None
    assignment: Mapping[str, Numbers]
    process_id: str = ""


class Description(NamedTuple):
    """A group as described by its coordinator. epochs: by what they are of, empty if classic.

    graph: of the topology of a Streams group, None if there is none; graph_status: why, by Kafka's
    names, empty for other types.
    """

    state: str
    protocol: str
    members: list[Member]
    epochs: Mapping[str, int]
    subtopologies: tuple[Subtopology, ...] = ()
    graph_status: str = ""
    graph: TopologyDescription | None = None


class Commit(NamedTuple):
    """The committed offset of a partition. end: its end offset, None if the topic was deleted."""

    topic: str
    partition: int
    offset: int
    end: int | None
    metadata: str

    @property
    def lag(self) -> int | None:
        return None if self.end is None else max(self.end - self.offset, 0)


class ShareStart(NamedTuple):
    """Where a share group starts in a partition. lag: records not finished, None if unknown."""

    topic: str
    partition: int
    start_offset: int
    lag: int | None


class Group(NamedTuple):
    """A group. description: None if it is of a type that is unknown."""

    listing: GroupListing
    description: Description | None
    commits: list[Commit]
    starts: list[ShareStart]

    @property
    def lag(self) -> int | None:
        of_rows = [*(row.lag for row in self.commits), *(row.lag for row in self.starts)]
        lags = [lag for lag in of_rows if lag is not None]
        return sum(lags) if lags else None

    @property
    def type(self) -> str:
        return self.listing.type.lower() or "classic"

    @property
    def state(self) -> str:
        return self.description.state if self.description else self.listing.state


async def read_group(admin: Admin, listing: GroupListing, topics: Collection[str]) -> Group | None:
    """Read a group. topics: those that exist."""
    group_id, group_type = listing.group_id, listing.type.lower()
    describe = DESCRIBE.get(group_type)
    description = None
    if describe is not None:
        description = await describe(admin, group_id)
        if description is None or description.state == DEAD:
            return None
    if group_type == SHARE:
        starts = await _starts(admin, group_id)
        return None if starts is None else Group(listing, description, [], starts)
    if describe is None and listing.protocol_type != CONSUMERS:
        return Group(listing, None, [], [])
    commits = await _commits(admin, group_id, topics)
    return None if commits is None else Group(listing, description, commits, [])


async def _commits(admin: Admin, group_id: str, topics: Collection[str]) -> list[Commit] | None:
    from kafkawire.net.admin import LATEST

    committed = await if_exists(admin.group_offsets(group_id))
    if committed is None:
        return None
    existing = {where: LATEST for where in committed if where[0] in topics}
    ends = await existing_offsets(admin, existing)
    return [
        Commit(
            *where,
            offset=commit.offset,
            end=ends[where].offset if where in ends else None,
            metadata=commit.metadata,
        )
        for where, commit in sorted(committed.items())
    ]


async def _starts(admin: Admin, group_id: str) -> list[ShareStart] | None:
    offsets = await if_exists(admin.share_group_offsets(group_id))
    if offsets is None:
        return None
    return [
        ShareStart(*where, row.start_offset, row.lag if row.lag >= 0 else None)
        for where, row in offsets.items()
    ]


# -- descriptions, by type of group


async def _classic(admin: Admin, group_id: str) -> Description | None:
    group = await existing_group(admin, group_id)
    if group is None:
        return None
    members = [
        Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            None,
            {ASSIGNED: _decoded(group, member.assignment)},
        )
        for member in group.members
    ]
    return Description(group.state, group.protocol, members, {})


def _decoded(group: GroupInfo, assignment: bytes) -> Numbers:
    """Decode the assignment of a consumer; other protocol types are opaque."""
    from kafkawire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
    from kafkawire.protocol.versioned import try_versioned

    if group.protocol_type != CONSUMERS or not assignment:
        return {}
    reading = try_versioned(ConsumerProtocolAssignment.__name__, assignment)
    if reading is None:
        return {}  # members may write any bytes
    return {row.topic: sorted(row.partitions) for row in reading.value.assigned_partitions}


async def _consumer(admin: Admin, group_id: str) -> Description | None:
    groups = await if_exists(admin.describe_consumer_groups([group_id]))
    if groups is None:
        return None
    group = groups[group_id]
    members = [
        _member(member, member.group_instance_id, {ASSIGNED: _by_name(member.assignment)})
        for member in group.members
    ]
    return Description(group.state, group.assignor, members, _epochs(group))


async def _share(admin: Admin, group_id: str) -> Description | None:
    groups = await if_exists(admin.describe_share_groups([group_id]))
    if groups is None:
        return None
    group = groups[group_id]
    members = [
        _member(member, None, {ASSIGNED: _by_name(member.assignment)}) for member in group.members
    ]
    return Description(group.state, group.assignor, members, _epochs(group))


async def _streams(admin: Admin, group_id: str) -> Description | None:
    groups = await if_exists(
        admin.describe_streams_groups([group_id], include_topology_description=True)
    )
    if groups is None:
        return None
    group = groups[group_id]
    members = [
        _member(member, member.group_instance_id, _by_kind(member.assignment), member.process_id)
        for member in group.members
    ]
    epochs = _epochs(group)
    if group.topology_epoch is not None:
        epochs["topology"] = group.topology_epoch
    return Description(
        group.state,
        group.assignor or "",
        members,
        epochs,
        group.subtopologies,
        group.topology_description_status.name,
        group.topology_description,
    )


def _member(
    member: ConsumerMemberInfo | ShareMemberInfo | StreamsMemberInfo,
    instance_id: str | None,
    assignment: Mapping[str, Numbers],
    process_id: str = "",
) -> Member:
    return Member(
        member.member_id,
        instance_id,
        member.client_id,
        member.client_host,
        member.member_epoch,
        assignment,
        process_id,
    )


def _epochs(group: ConsumerGroupInfo | ShareGroupInfo | StreamsGroupInfo) -> dict[str, int]:
    epochs = {"group": group.group_epoch, "assignment": group.assignment_epoch}
    return {name: epoch for name, epoch in epochs.items() if epoch is not None}


def _by_kind(tasks: StreamsTasks) -> dict[str, Numbers]:
    return {kind: _by_name(of_kind) for kind, of_kind in tasks._asdict().items()}


def _by_name(pairs: Iterable[tuple[str, int]]) -> Numbers:
    numbers: dict[str, list[int]] = defaultdict(list)
    for name, number in pairs:
        numbers[name].append(number)
    return dict(numbers)


Describe = Callable[["Admin", str], Awaitable[Description | None]]
DESCRIBE: Final[Mapping[str, Describe]] = {
    "": _classic,  # brokers before KIP-848
    "classic": _classic,
    CONSUMERS: _consumer,
    SHARE: _share,
    "streams": _streams,
}
"""How groups are described, by type."""
