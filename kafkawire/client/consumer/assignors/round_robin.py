"""Round robin: all partitions of all topics dealt out to the members in turn.

Law: who does not subscribe to a partition's topic is passed over, and the next partition goes to
who comes after the one that got it.

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
        wanted = {topic: partitions[topic] for topic in subscribers(ring) if topic in partitions}
        topics = [frozenset(member.topics) for member in ring]
        turn = 0
        for partition in all_partitions(wanted):
            while partition.topic not in topics[turn]:
                turn = (turn + 1) % len(ring)
            assigned[ring[turn].member_id].append(partition)
            turn = (turn + 1) % len(ring)
        return assigned
