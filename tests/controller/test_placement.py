"""Replicas are striped over racks and brokers."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.controller.placement import PlacementError, StripedReplicaPlacer, UsableBroker


def placed(brokers: list[UsableBroker], count: int, factor: int, seed: int = 1) -> list[list[int]]:
    return list(StripedReplicaPlacer(brokers, Random(seed)).place(count, factor))


BROKERS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
)


@given(BROKERS, st.integers(1, 40), st.integers(1, 9), st.integers(0, 99))
def test_the_law(given: list[tuple[str | None, bool]], count: int, factor: int, seed: int) -> None:
    brokers = [UsableBroker(number, *each) for number, each in enumerate(given)]
    fenced = {each.broker_id for each in brokers if each.fenced}
    rack = {each.broker_id: each.rack for each in brokers}
    if factor > len(brokers) or len(fenced) == len(brokers):
        with pytest.raises(PlacementError):
            placed(brokers, count, factor, seed)
        return
    racks = Counter(rack.values())
    for replicas in placed(brokers, count, factor, seed):
        assert len(set(replicas)) == factor
        assert replicas[0] not in fenced
        times = Counter(rack[each] for each in replicas)
        for name in racks:  # a rack with room has no replica less than another has before its last
            if times[name] < racks[name]:
                assert times[name] >= max(times.values()) - 1
        for name in racks:  # fenced brokers come last in their rack
            inside = [each for each in replicas if rack[each] == name]
            left = [each for each in rack if rack[each] == name and each not in [*inside, *fenced]]
            assert not left or not fenced & set(inside)


def test_leaders_and_replicas_are_even() -> None:
    brokers = [UsableBroker(number, "ab"[number % 2], False) for number in range(6)]
    replicas = placed(brokers, 600, 3)
    assert set(Counter(each[0] for each in replicas).values()) == {100}
    assert all(250 <= n <= 350 for n in Counter(one for each in replicas for one in each).values())


def test_followers_of_one_leader_are_many() -> None:
    brokers = [UsableBroker(number, None, False) for number in range(8)]
    followers = {each[1] for each in placed(brokers, 200, 2) if each[0] == 0}
    assert len(followers) > 4


@pytest.mark.parametrize(
    ("brokers", "factor", "reason"),
    [
        ([UsableBroker(1, None, False)], 0, "replication factor 0 is not positive"),
        (
            [UsableBroker(1, None, False)],
            2,
            r"only 1 broker\(s\) are registered or some brokers have all their log directories",
        ),
        ([UsableBroker(1, None, True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
    ],
)
def test_what_cannot_be_placed(brokers: list[UsableBroker], factor: int, reason: str) -> None:
    with pytest.raises(PlacementError, match=reason):
        placed(brokers, 1, factor)
