"""The state of one share group, and how its changes make it.

Invariant: a group changes only by `apply`, also when it is loaded; so the records of its changes
restore it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...deadlines import Deadlines
from ..consumer_groups.changes import (
    CurrentChanged,
    Deleted,
    EpochChanged,
    SubscriptionChanged,
    TargetChanged,
    TargetEpochChanged,
)
from ..consumer_groups.members import INITIAL_EPOCH, Current, Partitions, Subscription
from .members import NO_STATE, Change, ShareGroupState, StatePartitionsChanged

NO_SUBSCRIPTION: Final = Subscription()
NEW: Final = Current()


class ShareGroupConfig(NamedTuple):
    """The settings of a group; times in seconds.

    assignment_interval: the least time between two target assignments.
    """

    session_timeout: float = 45.0
    heartbeat_interval: float = 5.0
    assignment_interval: float = 0.0
    max_size: int = 200


DEFAULT_CONFIG: Final = ShareGroupConfig()


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Deadline: a member has sent no heartbeat for the session timeout."""

    member_id: str


class ShareGroupMetadata:
    """One group. `changes` holds those that are not yet logged.

    epoch, assignment_epoch: of the group and of its target assignment. assigned_at: when that was
    computed, in milliseconds since 1970. size: characters of the subscriptions of all members.
    """

    def __init__(self, group_id: str, config: ShareGroupConfig = DEFAULT_CONFIG) -> None:
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
        self.state_partitions = NO_STATE
        self.changes: list[Change] = []
        self.deadlines: Deadlines[SessionExpired] = Deadlines()
        self.names: Counter[str] = Counter()
        """Topic -> the number of members that are subscribed to it."""
        self.hashed = -1
        """The version of the topics whose hash is `metadata_hash`; -1 if it must be compared."""

    @property
    def population(self) -> int:
        """Number of members."""
        return len(self.subscriptions)

    @property
    def state(self) -> ShareGroupState:
        """Its state."""
        return ShareGroupState.STABLE if self.subscriptions else ShareGroupState.EMPTY

    @property
    def topic_names(self) -> frozenset[str]:
        """The names of the topics that members are subscribed to."""
        return frozenset(self.names)

    def change(self, change: Change) -> None:
        """Apply a change, which the coordinator will log."""
        self.apply(change)
        self.changes.append(change)

    def apply(self, change: Change) -> None:
        """Apply a change: a new one, or one of the log."""
        match change:
            case EpochChanged():
                self.epoch, self.metadata_hash = change
            case TargetEpochChanged():
                self.assignment_epoch, self.assigned_at = change
            case TargetChanged(member_id, None):
                self.targets.pop(member_id, None)
            case TargetChanged(member_id, partitions):
                assert partitions is not None
                self.targets[member_id] = partitions
            case SubscriptionChanged(member_id, subscription):
                self._apply_subscription(member_id, subscription)
            case CurrentChanged(member_id, None):
                self.current.pop(member_id, None)
            case CurrentChanged(member_id, current):
                assert current is not None
                self.current[member_id] = current
            case StatePartitionsChanged(state_partitions):
                self.state_partitions = state_partitions or NO_STATE
            case Deleted():
                self.epoch, self.assignment_epoch = INITIAL_EPOCH, 0

    def _apply_subscription(self, member_id: str, after: Subscription | None) -> None:
        before = self.subscriptions.get(member_id)
        self.hashed = -1
        for subscription, sign in ((before, -1), (after, 1)):
            if subscription is not None:
                self.size += sign * subscription.size
                for name in subscription.topic_names:
                    self.names[name] += sign
                    if not self.names[name]:
                        del self.names[name]
        if after is not None:
            self.subscriptions[member_id] = after
        else:
            self.subscriptions.pop(member_id, None)
