"""What an assignor is, for those of Kafka and for the user's own.

Law: an assignor keeps nothing from one rebalance to the next; what a member held is in what the
member says of itself.
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
    """What members do with what they hold when a rebalance begins (KIP-429)."""

    EAGER = "give up everything"
    COOPERATIVE = "keep it until told otherwise"


class Member(NamedTuple):
    """A member of the group, as it described itself when it joined.

    owned: what it holds, or held last; generation: the generation in which it got that, -1 for
    none. user_data: bytes of its assignor's own.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    group_instance_id: str | None = None
    rack_id: str | None = None
    user_data: bytes | None = None

    @property
    def place(self) -> tuple[bool, str]:
        """Where it stands among members: static ones first, by instance id, then by member id."""
        static = self.group_instance_id
        return (True, self.member_id) if static is None else (False, static)


class Assignor(Protocol):
    """Divides the partitions of a group; what a user's own assignor has to have."""

    @property
    def name(self) -> str:
        """The protocol name that all members must share."""
        ...

    @property
    def rebalance_protocols(self) -> frozenset[RebalanceProtocol]:
        """How members that use it may rebalance."""
        ...

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Say what goes into a member's subscription, given what it holds or held last."""
        ...

    def understand(self, member: Member) -> Member:
        """Read `user_data` of a member, where it says what was held."""
        ...

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        """Divide topics (name -> number of partitions) among the members; all of them are in the
        result. Topics that do not exist are not in `partitions`.
        """
        ...


class WithoutUserData:
    """The part of an assignor that has nothing to say about itself."""

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:  # noqa: ARG002
        return None

    def understand(self, member: Member) -> Member:
        return member


def in_order(members: Iterable[Member]) -> list[Member]:
    """Sort members as all assignors take them."""
    return sorted(members, key=lambda member: member.place)


def subscribers(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Say who subscribes to each topic, in the order of the members."""
    found: dict[str, list[Member]] = {}
    for member in members:
        for topic in dict.fromkeys(member.topics):
            found.setdefault(topic, []).append(member)
    return found


def all_partitions(partitions: Mapping[str, int]) -> Iterator[TopicPartition]:
    """Walk through partitions by topic and number."""
    for topic in sorted(partitions):
        for partition in range(partitions[topic]):
            yield TopicPartition(topic, partition)


def protocol_of(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Choose the protocol for a list of assignors: the best that all of them share (KIP-429)."""
    if not assignors:
        raise LocalProtocolError("a group needs at least one assignor")
    shared = frozenset.intersection(*(each.rebalance_protocols for each in assignors))
    if not shared:
        names = ", ".join(each.name for each in assignors)
        raise LocalProtocolError(f"the assignors {names} share no rebalance protocol")
    cooperative = RebalanceProtocol.COOPERATIVE in shared
    return RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
