"""Builds ConsumerGroupHeartbeat requests: all fields, or those that have changed.

A field is left out only if the coordinator has confirmed its value. A heartbeat that joins has
all fields and no partitions.

    v0   the coordinator chooses the member id
    v1   the client chooses it (KIP-1082); patterns of the broker
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from ....messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ....primitives import Message
from ...requests import Body, Varying
from ..group.requests import Identity

TopicIdPartition: TypeAlias = tuple[bytes, int]
"""(topic id, partition)."""

JOIN: Final = 0
LEAVE: Final = -1
LEAVE_STATIC: Final = -2
"""The epochs of a member that joins, leaves, and of a static member that will be back."""
UNCHANGED: Final = -1
"""The rebalance timeout of a heartbeat that does not change it."""
CLIENT_MEMBER_ID_VERSION: Final = 1
PATTERN_VERSION: Final = 1
NEWEST: Final = 1


class MemberFields(NamedTuple):
    """What a member tells its coordinator about itself.

    topic_pattern: in RE2's syntax, "" for none. owned: partitions that it has.
    """

    rebalance_timeout_ms: int
    rack_id: str | None
    topic_names: list[str]
    topic_pattern: str
    server_assignor: str | None
    owned: frozenset[TopicIdPartition]


def heartbeat(
    group_id: str,
    identity: Identity,
    epoch: int,
    fields: MemberFields,
    confirmed: MemberFields | None,
    *,
    id_from_coordinator: bool,
) -> Body:
    """Build a heartbeat that joins (epoch 0), or of a member.

    confirmed: the values that the coordinator has; None for a request with all fields.
    id_from_coordinator: whether the member id is one that version 0 accepts.
    """
    changes = _changes(fields, confirmed)
    owned = changes.get("owned")

    def make(version: int) -> Message:
        unnamed = version < CLIENT_MEMBER_ID_VERSION and not id_from_coordinator
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id="" if unnamed else identity.member_id,
            member_epoch=epoch,
            instance_id=identity.group_instance_id,
            rack_id=changes.get("rack_id"),
            rebalance_timeout_ms=changes.get("rebalance_timeout_ms", UNCHANGED),
            subscribed_topic_names=changes.get("topic_names"),
            subscribed_topic_regex=(
                changes.get("topic_pattern") if version >= PATTERN_VERSION else None
            ),
            server_assignor=changes.get("server_assignor"),
            topic_partitions=None if owned is None else _by_topic(owned),
        )

    return Varying(make, PATTERN_VERSION if fields.topic_pattern else 0, NEWEST)


def leave(group_id: str, identity: Identity, *, id_from_coordinator: bool) -> Body:
    """Build a heartbeat that leaves the group; a static member leaves for a while."""
    static = identity.group_instance_id is not None

    def make(_version: int) -> Message:
        return ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=identity.member_id,
            member_epoch=LEAVE_STATIC if static else LEAVE,
            instance_id=identity.group_instance_id,
        )

    return Varying(make, 0 if id_from_coordinator else CLIENT_MEMBER_ID_VERSION, NEWEST)


def _changes(fields: MemberFields, confirmed: MemberFields | None) -> dict[str, Any]:
    """Return the fields whose values the coordinator does not have, by name."""
    before = {} if confirmed is None else confirmed._asdict()
    return {
        name: value
        for name, value in fields._asdict().items()
        if name not in before or before[name] != value
    }


def _by_topic(partitions: Iterable[TopicIdPartition]) -> list[TopicPartitions]:
    grouped: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        grouped.setdefault(topic_id, []).append(partition)
    return [
        TopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in grouped.items()
    ]
