"""Assigns partitions evenly and keeps previous assignments where possible (KIP-54, KIP-341).

Members revoke everything when a rebalance begins, so their previous assignments are in the
user data of their subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....errors import DecodeError
from ....protocol.sticky import StickyTopicPartitions, StickyUserData
from ..partitions import TopicPartition, by_topic
from .assignor import Assignments, Member, RebalanceProtocol
from .balance import balanced

WITH_GENERATION: Final = 1


class StickyAssignor:
    """Kafka's sticky assignor; the user data is Kafka's, so other clients can be in the group."""

    name: Final = "sticky"
    rebalance_protocols: Final = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:
        if not held:
            return None
        previous = [
            StickyTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(held).items()
        ]
        data = StickyUserData(previous_assignment=previous, generation=generation)
        return data.encode(WITH_GENERATION)

    def understand(self, member: Member) -> Member:
        data = previous(member.user_data)
        if data is None:
            return member._replace(owned=(), generation=-1)
        owned = tuple(
            TopicPartition(each.topic, number)
            for each in data.previous_assignment
            for number in each.partitions
        )
        return member._replace(owned=owned, generation=data.generation)

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        return balanced(partitions, members)


def previous(data: bytes | None) -> StickyUserData | None:
    """Decode a member's previous assignment; the version is the first that decodes."""
    for version in (WITH_GENERATION, 0) if data else ():
        assert data is not None
        try:
            return StickyUserData.decode(data, version)
        except DecodeError:
            continue
    return None
