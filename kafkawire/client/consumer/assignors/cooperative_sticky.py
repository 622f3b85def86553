"""Assigns partitions like sticky, in two rebalances, so that only moving partitions stop (KIP-429).

A partition is never assigned while another member owns it. In the first rebalance its owner
revokes it and joins again; in the second the new owner gets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....errors import DecodeError
from ....protocol.sticky import CooperativeStickyUserData
from ..partitions import TopicPartition
from .assignor import Assignments, Member, RebalanceProtocol
from .balance import balanced
from .sticky import previous

VERSION: Final = 0


class CooperativeStickyAssignor:
    """Kafka's cooperative sticky assignor.

    The owned partitions are in the subscription; the generation is in the user data, and from
    version 2 on in the subscription too (KIP-792).
    """

    name: Final = "cooperative-sticky"
    rebalance_protocols: Final = frozenset(RebalanceProtocol)

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:  # noqa: ARG002
        return CooperativeStickyUserData(generation=generation).encode(VERSION)

    def understand(self, member: Member) -> Member:
        if member.generation >= 0 or not member.user_data:
            return member
        try:
            data = CooperativeStickyUserData.decode(member.user_data, VERSION)
        except DecodeError:  # librdkafka and franz-go write the layout of "sticky" here too
            held = previous(member.user_data)
            return member if held is None else member._replace(generation=held.generation)
        return member._replace(generation=data.generation)

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        assigned = balanced(partitions, members)
        held = {member.member_id: frozenset(member.owned) for member in members}
        # of any generation: a member reads what it claims until that is revoked
        claimed = frozenset[TopicPartition]().union(*held.values())
        return {
            member_id: [each for each in mine if each in held[member_id] or each not in claimed]
            for member_id, mine in assigned.items()
        }
