"""Custom assignors: used as Kafka's are; their failures are reported to the leader's user."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import ASSIGNORS, Member, TopicPartition
from kafkawire.client.consumer.assignors import Assignments, Assignor, RebalanceProtocol
from kafkawire.client.consumer.assignors.soundness import invalid_assignment
from kafkawire.client.consumer.failures import GroupFailed

from .test_scenarios import ORDERS, config, simulation, stable, write
from .users import User, covered

Divide = Callable[[Mapping[str, int], Sequence[Member]], Assignments]


class Own:
    """Returns the given assignments in turn, then by weight; user data: the weight."""

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
    """Give one partition to each member and the rest to the heaviest."""
    every = [TopicPartition(t, n) for t in sorted(partitions) for n in range(partitions[t])]
    light = sorted(members, key=lambda member: member.generation)
    found = {member.member_id: [every.pop()] for member in light[:-1]}
    return {**found, light[-1].member_id: every}


def test_custom_assignor_assigns_partitions() -> None:
    it = simulation()
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


def unknown_member(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return {**by_weight(partitions, members), "nobody": []}


def missing_member(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return dict(list(by_weight(partitions, members).items())[1:])


def twice(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    return {member: [*held, *held] for member, held in by_weight(partitions, members).items()}


def unsubscribed(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
    found = by_weight(partitions, members)
    return {member: [*held, TopicPartition("payments", 0)] for member, held in found.items()}


def no_such_partition(partitions: Mapping[str, int], members: Sequence[Member]) -> Assignments:
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
    fractions: r"invalid partition number \d\.0 of topic 'orders': expected an int",
    everything: r"orders-0 assigned to both '(.*)' and '(?!\1)",
    unknown_member: "unknown member 'nobody'",
    missing_member: "no assignment for member '",
    twice: r"orders-. assigned to both '(.*)' and '\1'",
    unsubscribed: "payments-0 assigned to '.*', which does not subscribe to 'payments'",
    no_such_partition: "no such partition: orders-4, assigned to '",
    broken: r"failed: ZeroDivisionError\('2 members, 1 topics'\)",
}


@pytest.mark.parametrize("divide", FAULTS)
def test_invalid_assignment_is_an_error_of_the_leader_and_retried(divide: Divide) -> None:
    it = simulation()
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
    assert not two.errors, "only the leader's user gets the error"


class Unable(Own):
    """Its method `where` raises an exception, once."""

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
def test_assignor_that_raises_is_an_error_of_its_user_and_retried(where: str) -> None:
    it = simulation()
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
def test_builtin_assignors_return_valid_assignments(
    assignor: Assignor, counts: dict[str, int], subscriptions: list[tuple[set[str], set[int]]]
) -> None:
    group = [
        Member(f"m{at}", tuple(topics), tuple(TopicPartition("a", n) for n in held), 1)
        for at, (topics, held) in enumerate(subscriptions)
    ]
    assert invalid_assignment(assignor.assign(counts, group), counts, group) is None
