"""Encodes and decodes the changes of a share group as records of `__consumer_offsets`.

ShareGroupMetadata                  EpochChanged            by group
ShareGroupMemberMetadata            SubscriptionChanged     by group and member
ShareGroupTargetAssignmentMetadata  TargetEpochChanged      by group
ShareGroupTargetAssignmentMember    TargetChanged           by group and member
ShareGroupCurrentMemberAssignment   CurrentChanged          by group and member
ShareGroupStatePartitionMetadata    StatePartitionsChanged  by group
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from ....messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from ....messages.share_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from ....messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from ....messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from ....messages.share_group_metadata_key import ShareGroupMetadataKey
from ....messages.share_group_metadata_value import ShareGroupMetadataValue
from ....messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from ....messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from ....messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from ....messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from ....messages.share_group_target_assignment_member_value import (
    TopicPartition as TargetPartitions,
)
from ....messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from ....messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from ....primitives import Message, Structure
from ....protocol.log_records import encode_log_message
from ..consumer_groups.changes import (
    CurrentChanged,
    Deleted,
    EpochChanged,
    SubscriptionChanged,
    TargetChanged,
    TargetEpochChanged,
)
from ..consumer_groups.members import Current, Partitions, Subscription
from ..consumer_groups.records import by_topic, partitions_of
from ..offsets import LogRecord
from .members import Change, StatePartitions, StatePartitionsChanged

VERSION: Final = 0
"""The only version of each key and value."""
NameOf = Callable[[bytes], str]


# -- writing


def encode(group_id: str, change: Change, name_of: NameOf) -> list[LogRecord]:
    """Encode a change of a group. name_of: returns the name of a topic."""
    return [
        (
            encode_log_message(key, VERSION),
            None if value is None else encode_log_message(value, VERSION),
        )
        for key, value in _messages(group_id, change, name_of)
    ]


def _messages(
    group_id: str, change: Change, name_of: NameOf
) -> list[tuple[Message, Message | None]]:
    match change:
        case EpochChanged(epoch, metadata_hash):
            value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            return [(ShareGroupMetadataKey(group_id=group_id), value)]
        case SubscriptionChanged(member_id, subscription):
            member = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            return [(member, None if subscription is None else _subscription(subscription))]
        case TargetEpochChanged(epoch, timestamp):
            target = ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp
            )
            return [(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), target)]
        case TargetChanged(member_id, partitions):
            key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            return [(key, None if partitions is None else _target(partitions))]
        case CurrentChanged(member_id, current):
            of = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            return [(of, None if current is None else _current(current))]
        case StatePartitionsChanged(states):
            states_key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
            return [(states_key, None if states is None else _states(states, name_of))]
        case Deleted():
            return [
                (ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
                (ShareGroupMetadataKey(group_id=group_id), None),
            ]


def _subscription(subscription: Subscription) -> ShareGroupMemberMetadataValue:
    return ShareGroupMemberMetadataValue(
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
    )


def _target(partitions: Partitions) -> ShareGroupTargetAssignmentMemberValue:
    return ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]
    )


def _current(current: Current) -> ShareGroupCurrentMemberAssignmentValue:
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=[
            CurrentPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(current.assigned).items()
        ],
    )


def _states(states: StatePartitions, name_of: NameOf) -> ShareGroupStatePartitionMetadataValue:
    def topics(partitions: Partitions) -> list[TopicPartitionsInfo]:
        return [
            TopicPartitionsInfo(topic_id=topic_id, topic_name=name_of(topic_id), partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]

    return ShareGroupStatePartitionMetadataValue(
        initializing_topics=topics(states.initializing),
        initialized_topics=topics(states.initialized),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name_of(topic_id))
            for topic_id in sorted(states.deleting)
        ],
    )


# -- reading


def decode(key: Structure, value: Structure | None) -> tuple[str, Change] | None:
    """Decode a record: the id of the group and the change; None for one of another kind."""
    kind = _CHANGES.get(type(key))
    return None if kind is None else kind(key, value)


def _epoch_changed(
    key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None
) -> tuple[str, Change]:
    if value is None:
        return key.group_id, Deleted()
    return key.group_id, EpochChanged(value.epoch, value.metadata_hash)


def _target_epoch_changed(
    key: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> tuple[str, Change]:
    if value is None:
        return key.group_id, TargetEpochChanged(0, 0)
    return key.group_id, TargetEpochChanged(value.assignment_epoch, value.assignment_timestamp)


def _subscription_changed(
    key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> tuple[str, Change]:
    subscription = None
    if value is not None:
        subscription = Subscription(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )
    return key.group_id, SubscriptionChanged(key.member_id, subscription)


def _target_changed(
    key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> tuple[str, Change]:
    partitions = None if value is None else partitions_of(value.topic_partitions)
    return key.group_id, TargetChanged(key.member_id, partitions)


def _current_changed(
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> tuple[str, Change]:
    current = None
    if value is not None:
        assigned = partitions_of(value.assigned_partitions)
        current = Current(value.member_epoch, value.previous_member_epoch, assigned=assigned)
    return key.group_id, CurrentChanged(key.member_id, current)


def _states_changed(
    key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> tuple[str, Change]:
    states = None
    if value is not None:
        states = StatePartitions(
            partitions_of(value.initializing_topics),
            partitions_of(value.initialized_topics),
            frozenset(each.topic_id for each in value.deleting_topics),
        )
    return key.group_id, StatePartitionsChanged(states)


_CHANGES: Final[Mapping[type[Structure], Any]] = {
    ShareGroupMetadataKey: _epoch_changed,
    ShareGroupTargetAssignmentMetadataKey: _target_epoch_changed,
    ShareGroupMemberMetadataKey: _subscription_changed,
    ShareGroupTargetAssignmentMemberKey: _target_changed,
    ShareGroupCurrentMemberAssignmentKey: _current_changed,
    ShareGroupStatePartitionMetadataKey: _states_changed,
}
