"""Assigns all partitions of all topics to the members in turn.

A member that does not subscribe to the partition's topic is skipped; the next partition goes
to the member after the one that got this one.

    topics t, u with 2 and 1 partitions, members A, B:   A t0 u0 │ B t1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .assignor import (
    Assignments,
    Member,
    RebalanceProtocol,
    WithoutUserData,
    all_partitions,
    in_order,
    subscribers,
)


class RoundRobinAssignor(WithoutUserData):
    """Kafka's round robin assignor."""

    name: Final = "roundrobin"
    rebalance_protocols: Final = frozenset({RebalanceProtocol.EAGER})

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        assigned: Assignments = {member.member_id: [] for member in members}
        ring = in_order(members)
        subscribed = {
            topic: partitions[topic] for topic in subscribers(ring) if topic in partitions
        }
        topics = [frozenset(member.topics) for member in ring]
        index = 0
        for partition in all_partitions(subscribed):
            while partition.topic not in topics[index]:
                index = (index + 1) % len(ring)
            assigned[ring[index].member_id].append(partition)
            index = (index + 1) % len(ring)
        return assigned
