"""The assignors: range, round robin, sticky, cooperative sticky.

An assignor is a pure function of the members' subscriptions and the topics' partition counts;
it assigns each partition of a subscribed topic to exactly one of the topic's subscribers.

    Member: topics, owned partitions, their generation ─▶ assign ─▶ member id -> partitions
"""

from .assignor import Assignments, Assignor, Member, RebalanceProtocol, protocol_of
from .cooperative_sticky import CooperativeStickyAssignor
from .range import RangeAssignor
from .round_robin import RoundRobinAssignor
from .sticky import StickyAssignor

ASSIGNORS = {
    each.name: each
    for each in (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    )
}
"""Kafka's assignors by protocol name."""

__all__ = [
    "ASSIGNORS",
    "Assignments",
    "Assignor",
    "CooperativeStickyAssignor",
    "Member",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "protocol_of",
]
