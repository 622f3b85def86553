"""The changes of a consumer group that its coordinator logs.

Invariant: a change is one record of `__consumer_offsets`; a group is what its changes made of it.
"""

from __future__ import annotations

from typing import NamedTuple

from .members import Current, Partitions, Subscription


class EpochChanged(NamedTuple):
    """The group epoch, and the hash of the topics that the group is subscribed to."""

    epoch: int
    metadata_hash: int


class SubscriptionChanged(NamedTuple):
    """The subscription of a member; None for one that is no longer a member."""

    member_id: str
    subscription: Subscription | None


class TargetChanged(NamedTuple):
    """The target assignment of a member; None for one that is no longer a member."""

    member_id: str
    partitions: Partitions | None


class TargetEpochChanged(NamedTuple):
    """The epoch of the target assignment, when it was computed in milliseconds since 1970."""

    epoch: int
    timestamp: int


class CurrentChanged(NamedTuple):
    """What a member has; None for one that is no longer a member."""

    member_id: str
    current: Current | None


class Resolved(NamedTuple):
    """The topics that a regular expression matches.

    version: of the topics among which they were looked for. timestamp: when, in milliseconds since
    1970.
    """

    topics: frozenset[str]
    version: int
    timestamp: int


class RegexResolved(NamedTuple):
    """The topics of a regular expression; None for one that no member has."""

    expression: str
    resolved: Resolved | None


class Deleted(NamedTuple):
    """The group is deleted; its members have been removed before."""


class Upgraded(NamedTuple):
    """The group was a classic one."""


Update = (
    EpochChanged
    | SubscriptionChanged
    | TargetChanged
    | TargetEpochChanged
    | CurrentChanged
    | RegexResolved
)
Removal = Deleted | Upgraded
"""What removes keys alone."""
Change = Update | Removal
