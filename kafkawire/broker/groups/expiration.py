"""Deletes committed offsets when their time is over, and groups that have none left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ...protocol.versioned import try_versioned
from .classic_groups.group import Group
from .classic_groups.states import GroupState
from .consumer_groups.group import ConsumerGroup
from .offsets import NEVER, Committed, TopicPartition
from .streams_groups.group import StreamsGroup

if TYPE_CHECKING:
    from .coordinator import Coordinator

CONSUMER: Final = "consumer"
MINUTE_MS: Final = 60_000


def subscribed(group: Group) -> frozenset[str] | None:
    """Return the subscribed topics of a classic consumer group; None if unknown."""
    if group.protocol_type != CONSUMER:
        return None
    topics: set[str] = set()
    for member in group.members:
        metadata = member.metadata(group.protocol_name)
        subscription = try_versioned(ConsumerProtocolSubscription.__name__, metadata)
        if subscription is None:
            return None
        topics.update(subscription.value.topics)
    return frozenset(topics)


def expire(coordinator: Coordinator, now: float) -> None:
    """Delete expired offsets, and empty groups without offsets."""
    for group in list(coordinator.groups.values()):
        in_use = subscribed(group) if len(group.members) else frozenset()
        since = _empty_since(coordinator, group)
        _delete_expired(coordinator, group.group_id, in_use, since, now)
        unused = group.state is GroupState.EMPTY and not group.pending_members
        if unused and not _has_offsets(coordinator, group.group_id):
            coordinator.forget(group, now)
    reading: list[tuple[ConsumerGroup | StreamsGroup, frozenset[str]]] = [
        *((each, each.topic_names) for each in coordinator.consumer_groups),
        *((each, each.source_topics) for each in coordinator.streams_groups),
    ]
    for modern, topics in reading:
        _delete_expired(coordinator, modern.group_id, topics, None, now)
        if not modern.population and not _has_offsets(coordinator, modern.group_id):
            coordinator.forget_modern(modern.group_id, now)


def _empty_since(coordinator: Coordinator, group: Group) -> int | None:
    """Return since when a group is empty, in milliseconds since 1970; None if it is not."""
    empty = group.state is GroupState.EMPTY and group.protocol_type is not None
    return coordinator.context.wall_ms(group.changed_at) if empty else None


def _has_offsets(coordinator: Coordinator, group_id: str) -> bool:
    pending = bool(coordinator.pending_offsets.of(group_id))
    return pending or bool(coordinator.offsets.get(group_id))


def _delete_expired(
    coordinator: Coordinator,
    group_id: str,
    in_use: frozenset[str] | None,
    empty_since: int | None,
    now: float,
) -> None:
    """Delete expired offsets of a group. in_use: topics that keep theirs, None for all."""
    if in_use is None:
        return
    retention = coordinator.context.settings.number("offsets.retention.minutes") * MINUTE_MS
    wall_ms = coordinator.context.wall_ms(now)

    def is_expired(of: TopicPartition, committed: Committed) -> bool:
        since = committed.commit_timestamp if empty_since is None else empty_since
        own = committed.expire_timestamp
        return of[0] not in in_use and wall_ms >= (since + retention if own == NEVER else own)

    offsets = coordinator.offsets.get(group_id, {})
    expired = [of for of, committed in offsets.items() if is_expired(of, committed)]
    coordinator.delete_offsets(group_id, expired, now)
