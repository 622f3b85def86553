"""Range: each topic on its own, its partitions in runs, the first members getting one more.

Law: topics with as many partitions and the same subscribers are divided alike, so that partitions
of the same number meet in one member (co-partitioning).

    7 partitions, 3 members:   A 0 1 2 │ B 3 4 │ C 5 6
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..partitions import TopicPartition
from .assignor import Assignments, Member, RebalanceProtocol, WithoutUserData, in_order, subscribers


class RangeAssignor(WithoutUserData):
    """Kafka's default assignor, without its preference for racks (KIP-881)."""

    name: Final = "range"
    rebalance_protocols: Final = frozenset({RebalanceProtocol.EAGER})

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        assigned: Assignments = {member.member_id: [] for member in members}
        subscribed = subscribers(in_order(members))
        for topic in sorted(subscribed.keys() & partitions.keys()):
            share, more = divmod(partitions[topic], len(subscribed[topic]))
            start = 0
            for place, member in enumerate(subscribed[topic]):
                end = start + share + (place < more)
                assigned[member.member_id] += [TopicPartition(topic, i) for i in range(start, end)]
                start = end
        return assigned
