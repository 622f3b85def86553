"""The state of one consumer group, and how its changes make it.

Invariant: a group changes only by `apply`, also when it is loaded; so the records of its changes
restore it. What requests need to know of all members is counted as members change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from ...deadlines import Deadlines
from . import changes
from .assignors import ASSIGNORS
from .members import (
    INITIAL_EPOCH,
    ConsumerGroupState,
    Current,
    MemberState,
    Partitions,
    Subscription,
    TopicPartition,
)

S = ConsumerGroupState
T = TypeVar("T")


class Migration(Enum):
    """Whether groups with members change their type (`group.consumer.migration.policy`)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (Migration.BIDIRECTIONAL, Migration.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (Migration.BIDIRECTIONAL, Migration.DOWNGRADE)


class GroupConfig(NamedTuple):
    """The settings of a group; times in seconds.

    assignors: those that members may choose, the default one first. assignment_interval: the least
    time between two target assignments. classic_max_size: of the classic group that it may become.
    """

    session_timeout: float = 45.0
    heartbeat_interval: float = 5.0
    assignment_interval: float = 0.0
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    migration: Migration = Migration.BIDIRECTIONAL
    classic_max_size: int = 2**31 - 1


DEFAULT_CONFIG: Final = GroupConfig()


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Deadline: a member has sent no heartbeat for the session timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class RebalanceExpired:
    """Deadline: a member has not revoked its partitions within its rebalance timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class JoinExpired:
    """Deadline: a member of the classic protocol has not rejoined within its rebalance timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class SyncExpired:
    """Deadline: a member of the classic protocol has not sent SyncGroup after its JoinGroup."""

    member_id: str


Deadline = SessionExpired | RebalanceExpired | JoinExpired | SyncExpired
DEADLINES: Final[tuple[type[Deadline], ...]] = (
    SessionExpired,
    RebalanceExpired,
    JoinExpired,
    SyncExpired,
)


class ConsumerGroupMetadata:
    """One group. `changes` holds those that are not yet logged.

    epoch, assignment_epoch: of the group and of its target assignment. assigned_at: when that was
    computed, in milliseconds since 1970. size: characters of the subscriptions of all members.
    """

    def __init__(self, group_id: str, config: GroupConfig = DEFAULT_CONFIG) -> None:
        self.group_id = group_id
        self.config = config
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assigned_at = 0
        self.size = 0
        self.subscriptions: dict[str, Subscription] = {}
        self.current: dict[str, Current] = {}
        self.targets: dict[str, Partitions] = {}
        self.changes: list[changes.Change] = []
        self.deadlines: Deadlines[Deadline] = Deadlines()
        self.resolved: dict[str, changes.Resolved] = {}
        self._static: dict[str, str] = {}
        self.owners: dict[TopicPartition, str] = {}
        self._names: Counter[str] = Counter()
        self._assignors: Counter[str] = Counter()
        self._protocols: Counter[str] = Counter()
        self.classic_members = 0
        """How many members use the classic protocol."""
        self.regexes: Counter[str] = Counter()
        self.revision = 0
        """Rises with each change of what the group is subscribed to."""
        self.hashed = (-1, -1)
        """The version of the topics and the revision whose hash is `metadata_hash`."""
        self._stable: Counter[int] = Counter()
        """Epoch -> the members that are reconciled to it."""

    # -- what it is

    @property
    def population(self) -> int:
        """Number of members."""
        return len(self.subscriptions)

    @property
    def state(self) -> ConsumerGroupState:
        """Its state, which follows from the epochs."""
        if not self.subscriptions:
            return S.EMPTY
        if self.epoch > self.assignment_epoch:
            return S.ASSIGNING
        settled = self._stable[self.assignment_epoch] == len(self.subscriptions)
        return S.STABLE if settled else S.RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members prefer."""
        preferred = [name for name, _ in self._assignors.most_common() if name in ASSIGNORS]
        return preferred[0] if preferred else self.config.assignors[0]

    @property
    def topic_names(self) -> frozenset[str]:
        """The names of the topics that members are subscribed to."""
        return frozenset(self._names).union(*(each.topics for each in self.resolved.values()))

    def names_of(self, subscription: Subscription) -> frozenset[str]:
        """Return the names of the topics of a subscription."""
        resolved = self.resolved.get(subscription.topic_regex)
        return (
            subscription.topic_names
            if resolved is None
            else (subscription.topic_names | resolved.topics)
        )

    def owner(self, partition: TopicPartition) -> str | None:
        """Return the member that has a partition, or must revoke it."""
        return self.owners.get(partition)

    def static_member(self, instance_id: str | None) -> str | None:
        """Return the member id of a static member."""
        return None if instance_id is None else self._static.get(instance_id)

    @property
    def downgrades(self) -> bool:
        """Whether all members use the classic protocol, so that it becomes a classic group."""
        only_classic = 0 < self.classic_members == len(self.subscriptions)
        fits = self.classic_members <= self.config.classic_max_size
        return only_classic and fits and self.config.migration.may_downgrade

    def supports(self, protocols: Iterable[str]) -> bool:
        """Whether all members of the classic protocol have one of these protocols."""
        return any(self._protocols[name] == self.classic_members for name in protocols)

    def session_timeout(self, member_id: str) -> float:
        """Return the session timeout of a member in seconds: that of a JoinGroup is its own."""
        classic = self.subscriptions[member_id].classic
        return self.config.session_timeout if classic is None else classic.session_timeout_ms / 1000

    # -- changes

    def change(self, change: changes.Change) -> None:
        """Apply a change, which the coordinator will log."""
        self.apply(change)
        self.changes.append(change)

    def apply(self, change: changes.Change) -> None:
        """Apply a change: a new one, or one of the log."""
        match change:
            case changes.EpochChanged():
                self.epoch, self.metadata_hash = change
            case changes.TargetEpochChanged():
                self.assignment_epoch, self.assigned_at = change
            case changes.TargetChanged(member_id, None):
                self.targets.pop(member_id, None)
            case changes.TargetChanged(member_id, partitions):
                assert partitions is not None
                self.targets[member_id] = partitions
            case changes.SubscriptionChanged(member_id, subscription):
                self._apply_subscription(member_id, subscription)
            case changes.CurrentChanged(member_id, current):
                self._apply_current(member_id, current)
            case changes.RegexResolved(expression, resolved):
                self._apply_regex(expression, resolved)
            case changes.Deleted():
                self.epoch, self.assignment_epoch = INITIAL_EPOCH, 0
            case changes.Upgraded():
                pass  # it is the classic group that is no more

    def _apply_regex(self, expression: str, resolved: changes.Resolved | None) -> None:
        self.revision += 1
        if resolved is None:
            self.resolved.pop(expression, None)
        else:
            self.resolved[expression] = resolved

    def _apply_subscription(self, member_id: str, after: Subscription | None) -> None:
        before = self.subscriptions.get(member_id)
        self.revision += 1
        for subscription, sign in ((before, -1), (after, 1)):
            if subscription is None:
                continue
            self.size += sign * subscription.size
            count_each(self._names, subscription.topic_names, sign)
            if subscription.topic_regex:
                count_each(self.regexes, (subscription.topic_regex,), sign)
            if subscription.server_assignor is not None:
                count_each(self._assignors, (subscription.server_assignor,), sign)
            if subscription.classic is not None:
                self.classic_members += sign
                names = {name for name, _ in subscription.classic.protocols}
                count_each(self._protocols, names, sign)
        if before is not None and self._static.get(before.instance_id or "") == member_id:
            del self._static[before.instance_id or ""]
        if after is None:
            self.subscriptions.pop(member_id, None)
        else:
            self.subscriptions[member_id] = after
            if after.instance_id is not None:
                self._static[after.instance_id] = member_id

    def _apply_current(self, member_id: str, after: Current | None) -> None:
        before = self.current.pop(member_id, None) if after is None else self.current.get(member_id)
        if before is not None:
            if before.state is MemberState.STABLE:
                count_each(self._stable, (before.epoch,), -1)
            for partition in before.assigned | before.pending_revocation:
                if self.owners.get(partition) == member_id:
                    del self.owners[partition]
        if after is not None:
            self.current[member_id] = after
            if after.state is MemberState.STABLE:
                count_each(self._stable, (after.epoch,), 1)
            for partition in after.assigned | after.pending_revocation:
                self.owners[partition] = member_id


def count_each(counter: Counter[T], keys: Iterable[T], sign: int) -> None:
    """Count keys up or down; those that are no longer counted are removed."""
    for key in keys:
        counter[key] += sign
        if not counter[key]:
            del counter[key]
