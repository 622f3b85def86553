"""Changes the type of groups that have members (KIP-848's online migration).

Invariant: members keep their ids and partitions; the generation of a classic group is the epoch of
the consumer group that it becomes, and the reverse.
"""

from __future__ import annotations

from typing import Final

from ....messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ....messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ....protocol import ErrorCode
from ....protocol.versioned import try_versioned
from ..classic_groups import joining
from ..classic_groups.group import Group
from ..classic_groups.member import Member
from ..classic_groups.states import GroupState
from ..requests import Effect, Protocols
from ..topics import Topics, metadata_hash
from . import changes
from .checks import Refusal
from .classic_protocol import CONSUMER, encoded, partitions_of, version_of
from .group import ConsumerGroup
from .members import (
    NOTHING,
    ClassicMember,
    Current,
    MemberState,
    Partitions,
    Subscription,
)
from .metadata import GroupConfig

E = ErrorCode
MALFORMED: Final = "the embedded consumer protocol is malformed"
CUSTOM_ASSIGNOR: Final = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
    "default assignor before re-attempting the upgrade"
)


def upgraded(
    classic: Group, config: GroupConfig, topics: Topics, now: float
) -> ConsumerGroup | Refusal:
    """Return the consumer group that a classic group with members becomes, or why it cannot.

    Its changes are not yet logged.
    """
    reason = _refusal(classic, config)
    if reason is not None:
        return _cannot_upgrade(classic, reason)
    members: dict[str, tuple[Subscription, Partitions]] = {}
    for member in classic.members:
        subscription = _subscription(classic, member)
        if subscription is None:
            return _cannot_upgrade(classic, MALFORMED)
        assigned = _assigned(member, topics)
        if isinstance(assigned, str):
            return _cannot_upgrade(classic, assigned)
        members[member.member_id] = subscription, assigned
    group = _consumer_group(classic, config, topics, members)
    group.loaded(now)
    return group


def _refusal(classic: Group, config: GroupConfig) -> str | None:
    if not config.migration.may_upgrade:
        return "online upgrade is disabled"
    if classic.protocol_type != CONSUMER:
        return "the group does not use the consumer embedded protocol"
    if len(classic.members) > config.max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def _cannot_upgrade(classic: Group, reason: str) -> Refusal:
    return Refusal(
        E.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _subscription(classic: Group, member: Member) -> Subscription | None:
    """Return what a member said in its last JoinGroup; None if that is malformed."""
    # a group in its first rebalance has not chosen a protocol yet: all say the same
    metadata = member.metadata(classic.protocol_name or member.protocols[0][0])
    reading = try_versioned(ConsumerProtocolSubscription.__name__, metadata)
    if reading is None:
        return None
    subscription: ConsumerProtocolSubscription = reading.value
    return Subscription(
        member.group_instance_id,
        subscription.rack_id or None,
        member.client_id,
        member.client_host,
        frozenset(subscription.topics),
        "",
        _ms(member.rebalance_timeout),
        None,
        ClassicMember(_ms(member.session_timeout), member.protocols),
    )


def _assigned(member: Member, topics: Topics) -> Partitions | str:
    """Return the partitions that a leader assigned to a member, or why they are not usable."""
    if not member.assignment:
        return NOTHING
    reading = try_versioned(ConsumerProtocolAssignment.__name__, member.assignment)
    if reading is None:
        return MALFORMED
    assignment: ConsumerProtocolAssignment = reading.value
    if assignment.user_data:
        return CUSTOM_ASSIGNOR
    return partitions_of(
        ((each.topic, each.partitions) for each in assignment.assigned_partitions), topics
    )


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _consumer_group(
    classic: Group,
    config: GroupConfig,
    topics: Topics,
    members: dict[str, tuple[Subscription, Partitions]],
) -> ConsumerGroup:
    group, epoch = ConsumerGroup(classic.group_id, config), classic.generation_id
    group.change(changes.Upgraded())
    for member_id, (subscription, _) in members.items():
        group.change(changes.SubscriptionChanged(member_id, subscription))
    group.change(changes.EpochChanged(epoch, metadata_hash(topics, group.topic_names)))
    for member_id, (_, partitions) in members.items():
        group.change(changes.TargetChanged(member_id, partitions))
    group.change(changes.TargetEpochChanged(epoch, 0))
    for member_id, (_, partitions) in members.items():
        current = Current(epoch, epoch, MemberState.STABLE, partitions)
        group.change(changes.CurrentChanged(member_id, current))
    return group


def downgrade(
    group: ConsumerGroup, classic: Group, topics: Topics, rebalances: bool, now: float
) -> list[Effect]:
    """Make a new classic group of a consumer group whose members all use the classic protocol.

    rebalances: whether its members have to rejoin. Returns the effects of that.
    """
    classic.generation_id = group.epoch
    classic.protocol_type = CONSUMER
    for member_id, subscription in group.subscriptions.items():
        classic.members.add(_member(member_id, subscription))
    classic.protocol_name = classic.members.elected_protocol()
    for member in classic.members:
        version = version_of(member.metadata(classic.protocol_name))
        partitions = _partitions_after(group, member.member_id, rebalances)
        classic.members.assign(member, encoded(partitions, version, topics))
        classic.renew_session(member, now)
    classic.state = GroupState.STABLE  # no transition: it has been a stable group of another type
    classic.changed_at = now
    return joining.prepare(classic, now) if rebalances else []


def _partitions_after(group: ConsumerGroup, member_id: str, rebalances: bool) -> Partitions:
    """Return the partitions of a member of the new classic group.

    Until it rejoins it reads what it had. Kafka 4.4 notes its target assignment, so that a consumer
    that joins before gets partitions that this member still reads.
    """
    if rebalances:
        current = group.current.get(member_id, Current())
        return current.assigned | current.pending_revocation
    return group.targets.get(member_id, NOTHING)


def _member(member_id: str, subscription: Subscription) -> Member:
    assert subscription.classic is not None
    protocols: Protocols = subscription.classic.protocols
    return Member(
        member_id,
        subscription.instance_id,
        subscription.client_id,
        subscription.client_host,
        subscription.classic.session_timeout_ms / 1000,
        subscription.rebalance_timeout_ms / 1000,
        protocols,
    )
