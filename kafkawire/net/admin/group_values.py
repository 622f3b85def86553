"""Results of the admin client about groups, under Kafka's names.

They are plain tuples: they compare, print and pickle.
"""

from __future__ import annotations

from typing import NamedTuple


class GroupListing(NamedTuple):
    """A group; state, type: "" from brokers that do not report them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class MemberInfo(NamedTuple):
    """A member of a group.

    metadata, assignment: as the members wrote them (`kafkawire.messages.consumer_protocol_*` for
    consumers).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupInfo(NamedTuple):
    """A group and its members; protocol: the assignor, if the group has one."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberInfo, ...]


class CommittedOffset(NamedTuple):
    """A committed offset of a group; leader_epoch: -1 if unknown."""

    offset: int
    leader_epoch: int
    metadata: str


class ShareGroupOffset(NamedTuple):
    """Where a share group is in a partition. lag: records that it has not finished, -1: unknown."""

    start_offset: int
    leader_epoch: int
    lag: int


class ShareMemberInfo(NamedTuple):
    """A member of a share group. rack_id: None without one.

    member_epoch: of the assignment that it received last. assignment: (topic, partition), sorted;
    other members may have the same.
    """

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    assignment: tuple[tuple[str, int], ...]


class ShareGroupInfo(NamedTuple):
    """A share group (KIP-932) and its members, sorted by id. state: Empty, Stable or Dead.

    group_epoch: grows when members, subscriptions or topics change. assignment_epoch: the group
    epoch that the assignment was computed for. assignor: its name.
    """

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMemberInfo, ...]
