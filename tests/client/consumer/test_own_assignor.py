"""Assignors of the user's own: used as Kafka's are, and told apart when they are at fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import ASSIGNORS, Member, TopicPartition
from kafkawire.client.consumer.assignors import Assignments, Assignor, RebalanceProtocol
from kafkawire.client.consumer.assignors.soundness import unsound
from kafkawire.client.consumer.failures import GroupFailed

from .test_stories import ORDERS, config, stable, world, write
from .users import User, covered

Divide = Callable[[Mapping[str, int], Sequence[Member]], Assignments]


class Own:
    """Divides as it is told to; says who it is for in its user data."""

    name = "own"
    rebalance_protocols = frozenset({RebalanceProtocol.EAGER})

    def __init__(self, weight: int, *divisions: Divide) -> None:
        self._weight = weight
        self._divisions = list(divisions)

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:  # noqa: ARG002
        return b"%d" % self._weight

    def understand(self, member: Member) -> Member:
        assert member.user_data is not None
        return member._replace(generation=int(member.user_data))

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
        divide = self._divisions.pop(0) if self._divisions else by_weight
        return divide(partitions, members)


def by_weight(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    """Give everything to the heaviest, but for one partition each."""
    every = [TopicPartition(t, n) for t in sorted(partitions) for n in range(partitions[t])]
    light = sorted(members, key=lambda member: member.generation)
    found = {member.member_id: [every.pop()] for member in light[:-1]}
    return {**found, light[-1].member_id: every}


def test_a_group_is_divided_by_the_users_own() -> None:
    it = world()
    write(it, 5, 3)
    one = User(it, "one", config(partition_assignment_strategy=Own(1)))
    two = User(it, "two", config(partition_assignment_strategy=Own(2)))
    for user in (one, two):
        user.subscribe("orders")
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    assert one.assignment == frozenset(ORDERS[3:])
    assert two.assignment == frozenset(ORDERS[:3])
    it.run(lambda: len(one.read) == 5)
    assert not two.read


def everything(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    """Give everything to everybody."""
    every = [TopicPartition(topic, n) for topic in partitions for n in range(partitions[topic])]
    return {member.member_id: every for member in members}


def stranger(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return {**by_weight(partitions, members), "nobody": []}


def forgetful(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return dict(list(by_weight(partitions, members).items())[1:])


def twice(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return {member: [*held, *held] for member, held in by_weight(partitions, members).items()}


def unasked(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    found = by_weight(partitions, members)
    return {member: [*held, TopicPartition("parcels", 0)] for member, held in found.items()}


def invented(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    found = by_weight(partitions, members)
    return {member: [*held, TopicPartition("orders", 4)] for member, held in found.items()}


def broken(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    raise ZeroDivisionError(f"{len(members)} members, {len(partitions)} topics")


def nothing(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return partitions and members and None  # type: ignore[return-value]


def numbers(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return {member.member_id: [0, len(partitions)] for member in members}  # type: ignore[list-item]


def fractions(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    found = by_weight(partitions, members)
    return {
        member: [TopicPartition(topic, float(n)) for topic, n in held]  # type: ignore[arg-type]
        for member, held in found.items()
    }


FAULTS: dict[Divide, str] = {
    nothing: "failed: AttributeError",
    numbers: "failed: TypeError",
    fractions: "a partition number is an int",
    everything: r"it gives orders-0 to '(.*)' and to '(?!\1)",
    stranger: "it gives partitions to 'nobody', who is no member",
    forgetful: "it leaves out the member '",
    twice: r"it gives orders-. to '(.*)' and to '\1'",
    unasked: "it gives parcels-0 to '.*', who does not subscribe to that topic",
    invented: "it gives orders-4 to '.*'; there is no such partition",
    broken: r"failed: ZeroDivisionError\('2 members, 1 topics'\)",
}


@pytest.mark.parametrize("divide", FAULTS)
def test_an_assignor_at_fault_is_the_leaders_users_error_and_tried_again(divide: Divide) -> None:
    it = world()
    one = User(it, "one", config(partition_assignment_strategy=Own(1, by_weight, divide)))
    one.subscribe("orders")
    it.run(lambda: covered([one], ORDERS) and stable(one))
    two = User(it, "two", config(partition_assignment_strategy=Own(2)))
    two.subscribe("orders")
    it.run(lambda: bool(one.errors))
    [error] = one.errors
    assert isinstance(error, GroupFailed)
    assert str(error).startswith("the assignor 'own' ")
    assert re.search(FAULTS[divide], str(error)), error
    raised: dict[Divide, type[Exception]] = {
        broken: ZeroDivisionError,
        nothing: AttributeError,
        numbers: TypeError,
    }
    assert type(error.__cause__) is raised.get(divide, type(None))
    it.run(lambda: covered([one, two], ORDERS) and stable(one, two))
    assert not two.errors, "only who divided badly hears of it"


class Unable(Own):
    """Its other methods raise, once."""

    def __init__(self, where: str) -> None:
        super().__init__(1)
        self.where = where

    def user_data(self, held: Sequence[TopicPartition], generation: int) -> bytes | None:
        self._fail_once("user_data")
        return super().user_data(held, generation)

    def understand(self, member: Member) -> Member:
        self._fail_once("understand")
        return super().understand(member)

    def _fail_once(self, where: str) -> None:
        if where == self.where:
            self.where = ""
            raise ZeroDivisionError(where)


@pytest.mark.parametrize("where", ["user_data", "understand"])
def test_an_assignor_that_raises_is_its_users_error_and_tried_again(where: str) -> None:
    it = world()
    one = User(it, "one", config(partition_assignment_strategy=Unable(where)))
    one.subscribe("orders")
    it.run(lambda: bool(one.errors))
    [error] = one.errors
    assert isinstance(error, GroupFailed)
    assert str(error) == f"the assignor 'own' failed: ZeroDivisionError('{where}')"
    it.run(lambda: covered([one], ORDERS) and stable(one))


TOPICS = ("a", "b", "c")
members = st.lists(
    st.tuples(st.sets(st.sampled_from(TOPICS)), st.sets(st.integers(0, 3))), min_size=1, max_size=5
)


@given(st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 4)), members)
@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_kafkas_own_are_never_at_fault(
    assignor: Assignor, counts: dict[str, int], said: list[tuple[set[str], set[int]]]
) -> None:
    group = [
        Member(f"m{at}", tuple(topics), tuple(TopicPartition("a", n) for n in held), 1)
        for at, (topics, held) in enumerate(said)
    ]
    assert unsound(assignor.assign(counts, group), counts, group) is None
