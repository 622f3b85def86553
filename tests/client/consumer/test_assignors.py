"""Assignors: whole, balanced, sticky; and held against Kafka's own, run from its jars."""

from __future__ import annotations

import base64
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import (
    ASSIGNORS,
    Assignments,
    Assignor,
    CooperativeStickyAssignor,
    Member,
    RangeAssignor,
    RebalanceProtocol,
    StickyAssignor,
    TopicPartition,
)
from kafkawire.client.consumer.assignors import protocol_of
from kafkawire.client.consumer.assignors.balance import balanced, previous_owners_of
from kafkawire.client.consumer.group.requests import JoinMetadata, subscription
from kafkawire.errors import LocalProtocolError
from tests.real.compiler import compiled
from tests.real.java import Installation

TOPICS = ("a", "b", "c", "d")
JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}

COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))
SUBSCRIBED = st.lists(st.sampled_from(TOPICS), unique=True).map(tuple)


@st.composite
def members(draw: st.DrawFn, alike: bool = False) -> list[Member]:
    """A group whose members may hold anything from before, in any generation."""
    number = draw(st.integers(1, 6))
    all_alike = draw(SUBSCRIBED) if alike else None
    found: list[Member] = []
    for i in range(number):
        topics = draw(SUBSCRIBED) if all_alike is None else all_alike
        owned = draw(
            st.lists(
                st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8)), unique=True
            )
        )
        static = f"s{number - i}" if draw(st.booleans()) else None
        generation = draw(st.integers(-1, 3))
        found.append(Member(f"m{i}", topics, tuple(owned), generation, static))
    return found


def wanted(counts: Mapping[str, int], group: Sequence[Member]) -> list[TopicPartition]:
    """All partitions that somebody subscribes to."""
    topics = {topic for member in group for topic in member.topics}
    return [TopicPartition(t, n) for t in sorted(topics & counts.keys()) for n in range(counts[t])]


def whole(result: Assignments, counts: Mapping[str, int], group: Sequence[Member]) -> None:
    """Each partition goes to exactly one of its subscribers; all members are in the result."""
    assert result.keys() == {member.member_id for member in group}
    assert sorted(chain.from_iterable(result.values())) == wanted(counts, group)
    for member in group:
        assert {each.topic for each in result[member.member_id]} <= set(member.topics)


def can_be_improved(result: Assignments, group: Sequence[Member]) -> bool:
    """Whether a chain of moves could even out two members: a search that knows no shortcuts."""
    load = {member: len(theirs) for member, theirs in result.items()}
    topics = {member.member_id: set(member.topics) for member in group}
    for start in load:
        reached, left = {start}, [start]
        while left:
            held = {each.topic for each in result[left.pop()]}
            new = {m for m in load if m not in reached and topics[m] & held}
            reached |= new
            left += new
        if any(load[m] <= load[start] - 2 for m in reached):
            return True
    return False


@given(counts=COUNTS, group=members())
@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
def test_every_partition_goes_to_one_subscriber(
    name: str, counts: dict[str, int], group: list[Member]
) -> None:
    whole(ASSIGNORS[name].assign(counts, group), counts, group)


@given(counts=COUNTS, group=members())
def test_no_chain_of_moves_makes_it_more_even(counts: dict[str, int], group: list[Member]) -> None:
    assert not can_be_improved(balanced(counts, group), group)


@given(counts=COUNTS, group=members(alike=True))
def test_with_like_subscriptions_loads_differ_by_one_and_only_what_must_moves(
    counts: dict[str, int], group: list[Member]
) -> None:
    result = balanced(counts, group)
    loads = [len(theirs) for theirs in result.values()]
    assert max(loads) - min(loads) <= 1
    total, size = sum(loads), len(group)
    kept = Counter(previous_owners_of(counts, group).values())
    stayed = sum(
        previous_owners_of(counts, group).get(each) == member
        for member, theirs in result.items()
        for each in theirs
    )
    # as many members as there are remainders may keep one more than the others
    share, more = divmod(total, size)
    most = sorted((kept[m.member_id] for m in group), reverse=True)
    assert stayed == sum(min(n, share + (i < more)) for i, n in enumerate(most))


@given(counts=COUNTS, group=members())
def test_what_is_balanced_stays(counts: dict[str, int], group: list[Member]) -> None:
    first = balanced(counts, group)
    again = [m._replace(owned=tuple(first[m.member_id]), generation=9) for m in group]
    assert balanced(counts, again) == first


@given(counts=COUNTS, group=members())
def test_range_divides_like_topics_alike(counts: dict[str, int], group: list[Member]) -> None:
    result = RangeAssignor().assign(counts, group)
    subscribed = {t: {m.member_id for m in group if t in m.topics} for t in counts}
    for a, b in pairwise(sorted(counts)):
        if counts[a] == counts[b] and subscribed[a] == subscribed[b]:
            for theirs in result.values():
                assert [n for t, n in theirs if t == a] == [n for t, n in theirs if t == b]


@given(counts=COUNTS, group=members())
def test_cooperative_never_gives_what_another_holds_and_settles_in_two_rounds(
    counts: dict[str, int], group: list[Member]
) -> None:
    assignor = CooperativeStickyAssignor()
    given = assignor.assign(counts, group)
    for member in group:
        for other in group:
            if other is not member:
                gained = set(given[member.member_id]) - set(member.owned)
                assert not gained & set(other.owned)
    for generation in (7, 8):
        group = [m._replace(owned=tuple(given[m.member_id]), generation=generation) for m in group]
        given = assignor.assign(counts, group)
    whole(given, counts, group)
    assert not can_be_improved(given, group)


def test_a_later_generations_claim_wins_and_equal_ones_cancel() -> None:
    a0, a1 = TopicPartition("a", 0), TopicPartition("a", 1)
    old = Member("old", ("a",), (a0, a1), 3)
    new = Member("new", ("a",), (a0,), 4)
    twin = Member("twin", ("a",), (a1,), 3)
    assert previous_owners_of({"a": 2}, [old, new, twin]) == {a0: "new"}


def test_sticky_user_data_travels() -> None:
    held = (TopicPartition("a", 1), TopicPartition("b", 0))
    data = StickyAssignor().user_data(held, 5)
    read = StickyAssignor().understand(Member("m", ("a",), user_data=data))
    assert (read.owned, read.generation) == (held, 5)
    cooperative_data = CooperativeStickyAssignor().user_data(held, 5)
    assert (
        CooperativeStickyAssignor()
        .understand(Member("m", (), user_data=cooperative_data))
        .generation
        == 5
    )
    # librdkafka writes the layout of "sticky" under both names
    assert CooperativeStickyAssignor().understand(Member("m", (), user_data=data)).generation == 5


def test_the_protocol_is_the_best_that_all_assignors_share() -> None:
    cooperative = ASSIGNORS["cooperative-sticky"]
    assert protocol_of([cooperative]) is RebalanceProtocol.COOPERATIVE
    assert protocol_of([ASSIGNORS["range"], cooperative]) is RebalanceProtocol.EAGER
    with pytest.raises(LocalProtocolError):
        protocol_of([])


# Kafka's own assignors.

Run = Callable[[str, Mapping[str, int], Sequence[Member]], Assignments]


@pytest.fixture(scope="module")
def java(installation: Installation) -> Iterator[Run]:
    """A program that runs them, kept running."""
    source = Path(__file__).parent / "java" / "Assign.java"
    process = subprocess.Popen(
        compiled(installation, source).command(source.stem),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def run(name: str, counts: Mapping[str, int], group: Sequence[Member]) -> Assignments:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"assignor {JAVA[name]}\n")
        for topic, count in counts.items():
            process.stdin.write(f"topic {topic} {count}\n")
        for member in group:
            encoded = base64.b64encode(_subscription(ASSIGNORS[name], member)).decode()
            static = member.group_instance_id or "-"
            process.stdin.write(f"member {member.member_id} {static} {encoded}\n")
        process.stdin.write("go\n")
        process.stdin.flush()
        found: Assignments = {}
        while (line := process.stdout.readline().strip()) != "done":
            assert line, "the Java program ended"
            member_id, *theirs = line.split(" ")
            pairs = (each.rsplit(":", 1) for each in theirs)
            found[member_id] = [TopicPartition(topic, int(number)) for topic, number in pairs]
        return found

    with process:
        yield run
        process.stdin.close()


def _subscription(assignor: Assignor, member: Member) -> bytes:
    eager = RebalanceProtocol.COOPERATIVE not in assignor.rebalance_protocols
    owned = () if eager else member.owned
    join_metadata = JoinMetadata(member.topics, owned, member.owned, member.generation)
    return subscription(join_metadata, assignor, member.generation, "")


def random_group(random: Random, *, alike: bool, held: bool) -> tuple[dict[str, int], list[Member]]:
    """A group: of members with like subscriptions or not; that held something, or nothing."""
    counts = {topic: random.randrange(1, 9) for topic in TOPICS}
    same = tuple(sorted(random.sample(TOPICS, random.randrange(1, 5))))
    group = [
        Member(
            f"m{i}",
            same if alike else tuple(sorted(random.sample(TOPICS, random.randrange(1, 5)))),
            group_instance_id=f"s{random.randrange(1000)}-{i}" if random.random() < 0.3 else None,
        )
        for i in range(random.randrange(1, 7))
    ]
    if held:
        before = balanced(counts, group[: random.randrange(1, len(group) + 1)])
        group = [
            m._replace(owned=tuple(before.get(m.member_id, ())), generation=4 if before else -1)
            for m in group
        ]
        counts = {t: n + random.choice((0, 0, 2)) for t, n in counts.items()}
    return counts, group


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_equal_to_kafkas(java: Run, name: str) -> None:
    random = Random(1)
    for _ in range(300):
        counts, group = random_group(random, alike=random.random() < 0.5, held=False)
        ours = ASSIGNORS[name].assign(counts, group)
        assert ours == java(name, counts, group), (counts, group)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_first_sticky_assignment_is_kafkas(java: Run, name: str) -> None:
    random = Random(2)
    for _ in range(300):
        counts, group = random_group(random, alike=True, held=False)
        group = [member._replace(group_instance_id=None) for member in group]
        ours = ASSIGNORS[name].assign(counts, group)
        theirs = java(name, counts, group)
        assert ours == {member: sorted(each) for member, each in theirs.items()}, (counts, group)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("alike", [True, False])
def test_sticky_is_as_even_as_kafkas_and_moves_no_more(java: Run, alike: bool) -> None:
    """Of unlike subscriptions Kafka's may leave what a chain of moves would even out; and where
    both are as even, either may move a partition less, so there only the sum counts.
    """
    random = Random(3)
    kept = kafka_kept = 0
    for _ in range(300):
        counts, group = random_group(random, alike=alike, held=True)
        ours, theirs = balanced(counts, group), java("sticky", counts, group)
        loads, kafkas = _loads(ours), _loads(theirs)
        assert sum(n * n for n in loads) <= sum(n * n for n in kafkas), (counts, group)
        if loads == kafkas:
            kept += _kept(ours, group)
            kafka_kept += _kept(theirs, group)
            assert not alike or _kept(ours, group) >= _kept(theirs, group), (counts, group)
    assert kept >= kafka_kept


@pytest.mark.timeout(600)
def test_kafkas_member_understands_our_subscription_and_withholds_the_same(java: Run) -> None:
    """With one member more, what moves is withheld in the first round, by both."""
    random = Random(4)
    for _ in range(200):
        counts, group = random_group(random, alike=True, held=True)
        ours = CooperativeStickyAssignor().assign(counts, group)
        for result in (ours, java("cooperative-sticky", counts, group)):
            for member in group:
                others = {o for m in group if m is not member for o in m.owned}
                assert not (set(result[member.member_id]) - set(member.owned)) & others


def _loads(result: Assignments) -> list[int]:
    return sorted(len(theirs) for theirs in result.values())


def _kept(result: Assignments, group: Sequence[Member]) -> int:
    return sum(len(set(result[member.member_id]) & set(member.owned)) for member in group)
