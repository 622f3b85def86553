"""The changes of a Streams group that its coordinator logs.

Invariant: a change is one record of `__consumer_offsets`; a group is what its changes made of it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..consumer_groups.changes import TargetEpochChanged
from .members import Current, Member
from .tasks import Tasks
from .topology import Pairs, Topology


class EpochChanged(NamedTuple):
    """The group epoch, and what the target assignment of that epoch depends on.

    metadata_hash: of the topics. validated_epoch: of the topology whose topics fit, -1 for none.
    configs: those of the assignor.
    """

    epoch: int
    metadata_hash: int
    validated_epoch: int
    configs: Pairs


class TopologyChanged(NamedTuple):
    """The topology of the group; None for a group that is deleted."""

    topology: Topology | None


class MemberChanged(NamedTuple):
    """What a member says of itself; None for a former member."""

    member_id: str
    member: Member | None


class TargetChanged(NamedTuple):
    """The target assignment of a member; None for a former member."""

    member_id: str
    tasks: Tasks | None


class CurrentChanged(NamedTuple):
    """What a member has; None for a former member."""

    member_id: str
    current: Current | None


class Deleted(NamedTuple):
    """The group is deleted; its members have been removed before."""


Change = (
    EpochChanged
    | TopologyChanged
    | MemberChanged
    | TargetChanged
    | TargetEpochChanged
    | CurrentChanged
    | Deleted
)
