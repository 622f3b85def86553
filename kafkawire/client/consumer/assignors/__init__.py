"""Who in a group reads which partitions: range, round robin, sticky, cooperative sticky.

Law: an assignor is a pure function of the members' subscriptions and the topics' partition counts;
each partition of a topic that somebody subscribes to goes to exactly one of its subscribers.

    Member: topics, what it held, in which generation ─▶ assign ─▶ member id -> partitions
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
"""The assignors that Kafka has, by the names that groups know them by."""

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
