"""The members of a share group, and the changes of a group that its coordinator logs.

Invariant: a change is one record of `__consumer_offsets`; a group is what its changes made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ..consumer_groups.changes import (
    CurrentChanged,
    Deleted,
    EpochChanged,
    SubscriptionChanged,
    TargetChanged,
    TargetEpochChanged,
)
from ..consumer_groups.members import JOIN, NOTHING, Partitions, Subscription


class ShareGroupState(Enum):
    """A state; its value is its name in ListGroups."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat; None for what does not change."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, so that its response has the assignment."""
        return self.member_epoch == JOIN or self.topic_names is not None

    def subscription(self, before: Subscription) -> Subscription:
        """Return what the member says of itself after this heartbeat."""
        return Subscription(
            rack_id=before.rack_id if self.rack_id is None else self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            topic_names=before.topic_names if self.topic_names is None else self.topic_names,
        )


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The partitions whose state the share coordinators have, or are to have.

    initializing: requested, and not confirmed. initialized: those that may be assigned. deleting:
    topics whose state is to be deleted.
    """

    initializing: Partitions = NOTHING
    initialized: Partitions = NOTHING
    deleting: frozenset[bytes] = frozenset()


class StatePartitionsChanged(NamedTuple):
    """The partitions with state; None for a group without any."""

    partitions: StatePartitions | None


NO_STATE: Final = StatePartitions()
Change = (
    EpochChanged
    | SubscriptionChanged
    | TargetChanged
    | TargetEpochChanged
    | CurrentChanged
    | StatePartitionsChanged
    | Deleted
)
