"""Encodes and decodes the changes of a consumer group as records of `__consumer_offsets`.

ConsumerGroupMetadata                 EpochChanged          by group
ConsumerGroupMemberMetadata           SubscriptionChanged   by group and member
ConsumerGroupTargetAssignmentMetadata TargetEpochChanged    by group
ConsumerGroupTargetAssignmentMember   TargetChanged         by group and member
ConsumerGroupCurrentMemberAssignment  CurrentChanged        by group and member
ConsumerGroupRegularExpression        RegexResolved         by group and expression
GroupMetadata                         Upgraded              by group: its tombstone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from ....messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from ....messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from ....messages.consumer_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from ....messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from ....messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from ....messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from ....messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from ....messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from ....messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from ....messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from ....messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from ....messages.consumer_group_target_assignment_member_value import (
    TopicPartition as TargetPartitions,
)
from ....messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ....messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ....messages.group_metadata_key import GroupMetadataKey
from ....primitives import Message, Structure
from ....protocol.log_records import encode_log_message
from ..offsets import LogRecord
from . import changes
from .members import ClassicMember, Current, MemberState, Partitions, Subscription, TopicPartition

VERSION: Final = 0
"""The only version of each key and value."""


class OfTopic(Protocol):
    """Partitions of a topic, in a record or a message."""

    topic_id: bytes
    partitions: list[int]


T = TypeVar("T", bound=OfTopic)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[bytes, list[int]]:
    """Return the partitions of each topic, in order."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return topics


def partitions_of(topics: Iterable[OfTopic]) -> Partitions:
    """Return the partitions in a record or a message."""
    return frozenset((each.topic_id, index) for each in topics for index in each.partitions)


# -- writing


def encode(group_id: str, change: changes.Change) -> list[LogRecord]:
    """Encode a change of a group."""
    if isinstance(change, changes.Removal):
        return [(encode_log_message(key, VERSION), None) for key in _removed(group_id, change)]
    key, value = _message(group_id, change)
    encoded = None if value is None else encode_log_message(value, VERSION)
    return [(encode_log_message(key, VERSION), encoded)]


def _removed(group_id: str, change: changes.Removal) -> list[Message]:
    """Return the keys of tombstones."""
    if isinstance(change, changes.Upgraded):
        return [GroupMetadataKey(group=group_id)]
    return [
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupMetadataKey(group_id=group_id),
    ]


def _message(group_id: str, change: changes.Update) -> tuple[Message, Message | None]:
    match change:
        case changes.EpochChanged(epoch, metadata_hash):
            value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            return ConsumerGroupMetadataKey(group_id=group_id), value
        case changes.SubscriptionChanged(member_id, subscription):
            member = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            return member, None if subscription is None else _subscription(subscription)
        case changes.TargetEpochChanged(epoch, timestamp):
            target = ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp
            )
            return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), target
        case changes.TargetChanged(member_id, partitions):
            key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            return key, None if partitions is None else _target(partitions)
        case changes.CurrentChanged(member_id, current):
            of = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            return of, None if current is None else _current(current)
        case changes.RegexResolved(expression, resolved):
            regex = ConsumerGroupRegularExpressionKey(
                group_id=group_id, regular_expression=expression
            )
            return regex, None if resolved is None else _resolved(resolved)


def _subscription(member: Subscription) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None if member.classic is None else _classic(member.classic),
    )


def _classic(member: ClassicMember) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=member.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
        ],
    )


def _resolved(resolved: changes.Resolved) -> ConsumerGroupRegularExpressionValue:
    return ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp
    )


def _target(partitions: Partitions) -> ConsumerGroupTargetAssignmentMemberValue:
    topics = by_topic(partitions).items()
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics
        ]
    )


def _current(current: Current) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_current_topics(current, current.assigned),
        partitions_pending_revocation=_current_topics(current, current.pending_revocation),
    )


def _current_topics(current: Current, partitions: Partitions) -> list[CurrentPartitions]:
    return [
        CurrentPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=[current.since_epoch((topic_id, at)) or 0 for at in indexes],
        )
        for topic_id, indexes in by_topic(partitions).items()
    ]


# -- reading


def decode(key: Structure, value: Structure | None) -> tuple[str, changes.Change] | None:
    """Decode a record: the id of the group and the change; None for one of another kind."""
    kind = _CHANGES.get(type(key))
    return None if kind is None else kind(key, value)


def _epoch_changed(
    key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> tuple[str, changes.Change]:
    if value is None:
        return key.group_id, changes.Deleted()
    return key.group_id, changes.EpochChanged(value.epoch, value.metadata_hash)


def _target_epoch_changed(
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> tuple[str, changes.Change]:
    if value is None:
        return key.group_id, changes.TargetEpochChanged(0, 0)
    return key.group_id, changes.TargetEpochChanged(
        value.assignment_epoch, value.assignment_timestamp
    )


def _subscription_changed(
    key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> tuple[str, changes.Change]:
    subscription = None
    if value is not None:
        subscription = Subscription(
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            frozenset(value.subscribed_topic_names),
            value.subscribed_topic_regex or "",
            value.rebalance_timeout_ms,
            value.server_assignor,
            _classic_member(value.classic_member_metadata),
        )
    return key.group_id, changes.SubscriptionChanged(key.member_id, subscription)


def _classic_member(metadata: ClassicMemberMetadata | None) -> ClassicMember | None:
    if metadata is None:
        return None
    protocols = tuple((each.name, each.metadata) for each in metadata.supported_protocols)
    return ClassicMember(metadata.session_timeout_ms, protocols)


def _target_changed(
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> tuple[str, changes.Change]:
    partitions = None if value is None else partitions_of(value.topic_partitions)
    return key.group_id, changes.TargetChanged(key.member_id, partitions)


def _since(topics: Iterable[CurrentPartitions]) -> dict[TopicPartition, int]:
    """Return the epochs since which a member has partitions; older records have none."""
    return {
        (topic.topic_id, index): epoch
        for topic in topics
        for index, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
    }


def _current_changed(
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> tuple[str, changes.Change]:
    current = None
    if value is not None:
        states = {state.value: state for state in MemberState}
        current = Current(
            value.member_epoch,
            value.previous_member_epoch,
            states.get(value.state, MemberState.STABLE),
            partitions_of(value.assigned_partitions),
            partitions_of(value.partitions_pending_revocation),
            _since([*value.assigned_partitions, *value.partitions_pending_revocation]),
        )
    return key.group_id, changes.CurrentChanged(key.member_id, current)


def _regex_resolved(
    key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> tuple[str, changes.Change]:
    resolved = None
    if value is not None:
        resolved = changes.Resolved(frozenset(value.topics), value.version, value.timestamp)
    return key.group_id, changes.RegexResolved(key.regular_expression, resolved)


_CHANGES: Final[Mapping[type[Structure], Any]] = {
    ConsumerGroupMetadataKey: _epoch_changed,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch_changed,
    ConsumerGroupMemberMetadataKey: _subscription_changed,
    ConsumerGroupTargetAssignmentMemberKey: _target_changed,
    ConsumerGroupCurrentMemberAssignmentKey: _current_changed,
    ConsumerGroupRegularExpressionKey: _regex_resolved,
}
