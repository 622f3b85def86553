"""The interface of assignors, of Kafka's and of custom ones.

An assignor has no state between rebalances; a member's previous assignment is in its
subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from ....errors import LocalProtocolError
from ..partitions import TopicPartition

Assignments: TypeAlias = dict[str, list[TopicPartition]]
"""Member id -> partitions."""


class RebalanceProtocol(Enum):
    """What members do with their partitions when a rebalance begins (KIP-429)."""

    EAGER = "revoke all partitions"
    COOPERATIVE = "keep partitions until they are revoked"


class Member(NamedTuple):
    """A member of the group, from its subscription.

    owned: the partitions it owns, or owned last. generation: of that assignment, -1 for none.
    user_data: the assignor's own bytes.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    group_instance_id: str | None = None
    rack_id: str | None = None
    user_data: bytes | None = None

    @property
    def sort_key(self) -> tuple[bool, str]:
        """The order of members: static ones first, by instance id, then by member id."""
        static = self.group_instance_id
        return (True, self.member_id) if static is None else (False, static)


class Assignor(Protocol):
    """Assigns the partitions of a group; custom assignors implement this."""

    @property
    def name(self) -> str:
        """The protocol name; all members must support a common one."""
        ...

    @property
    def rebalance_protocols(self) -> frozenset[RebalanceProtocol]:
        """The rebalance protocols that the assignor supports."""
        ...

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the user data of a subscription. held: the partitions owned now, or last."""
        ...

    def understand(self, member: Member) -> Member:
        """Return the member with `owned` and `generation` read from its `user_data`."""
        ...

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        """Assign topics (name -> number of partitions); the result has every member.

        Topics that do not exist are not in `partitions`.
        """
        ...


class WithoutUserData:
    """The base of assignors without user data."""

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:  # noqa: ARG002
        return None

    def understand(self, member: Member) -> Member:
        return member


def in_order(members: Iterable[Member]) -> list[Member]:
    """Sort members in the order that all assignors use."""
    return sorted(members, key=lambda member: member.sort_key)


def subscribers(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Return the subscribers of each topic, in the order of the members."""
    by_topic: dict[str, list[Member]] = {}
    for member in members:
        for topic in dict.fromkeys(member.topics):
            by_topic.setdefault(topic, []).append(member)
    return by_topic


def all_partitions(partitions: Mapping[str, int]) -> Iterator[TopicPartition]:
    """Iterate over partitions by topic and number."""
    for topic in sorted(partitions):
        for partition in range(partitions[topic]):
            yield TopicPartition(topic, partition)


def protocol_of(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Return the best rebalance protocol that all assignors support (KIP-429)."""
    if not assignors:
        raise LocalProtocolError("at least one assignor is required")
    shared = frozenset.intersection(*(each.rebalance_protocols for each in assignors))
    if not shared:
        names = ", ".join(each.name for each in assignors)
        raise LocalProtocolError(f"the assignors {names} have no rebalance protocol in common")
    cooperative = RebalanceProtocol.COOPERATIVE in shared
    return RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
