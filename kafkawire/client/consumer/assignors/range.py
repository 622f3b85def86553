"""Assigns each topic on its own, in consecutive runs; the first members get one more.

Topics with the same partition count and subscribers are assigned alike, so that partitions of
the same number go to the same member (co-partitioning).

    7 partitions, 3 members:   A 0 1 2 │ B 3 4 │ C 5 6
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..partitions import TopicPartition
from .assignor import Assignments, Member, RebalanceProtocol, WithoutUserData, in_order, subscribers


class RangeAssignor(WithoutUserData):
    """Kafka's default assignor, without rack awareness (KIP-881)."""

    name: Final = "range"
    rebalance_protocols: Final = frozenset({RebalanceProtocol.EAGER})

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        assigned: Assignments = {member.member_id: [] for member in members}
        subscribed = subscribers(in_order(members))
        for topic in sorted(subscribed.keys() & partitions.keys()):
            share, more = divmod(partitions[topic], len(subscribed[topic]))
            start = 0
            for index, member in enumerate(subscribed[topic]):
                end = start + share + (index < more)
                assigned[member.member_id] += [TopicPartition(topic, i) for i in range(start, end)]
                start = end
        return assigned
