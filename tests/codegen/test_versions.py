"""The algebra of version ranges, against sets of versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire_codegen.versions import ALL, NEWEST, NONE, VersionCondition, Versions

TOP = 12
"""Sets stay small: an open end stands for everything up to here."""


@st.composite
def ranges(draw: st.DrawFn) -> Versions:
    low = draw(st.integers(0, TOP))
    high = draw(st.one_of(st.integers(low, TOP), st.just(NEWEST), st.just(-1)))
    return Versions(low, high) if high >= low else NONE


def as_set(versions: Versions) -> set[int]:
    return {v for v in range(TOP + 1) if v in versions} | (
        {NEWEST} if NEWEST in versions else set()
    )


def is_run(numbers: set[int]) -> bool:
    """Whether numbers follow each other; between TOP and NEWEST nothing else can be."""
    steps = sorted(TOP + 1 if n == NEWEST else n for n in numbers)
    return not steps or steps[-1] - steps[0] == len(steps) - 1


@given(ranges())
def test_what_is_printed_is_read_again(a: Versions) -> None:
    assert Versions.parse(str(a)) == a


@given(ranges())
def test_length_truth_and_open_end_agree_with_the_set(a: Versions) -> None:
    assert bool(a) == bool(as_set(a))
    assert a.open_ended == (NEWEST in as_set(a))
    assert len(a) == (len(as_set(a)) if not a.open_ended else NEWEST - a.low + 1)


@given(ranges(), ranges())
def test_intersection_and_covering_are_those_of_sets(a: Versions, b: Versions) -> None:
    assert as_set(a & b) == as_set(a) & as_set(b)
    assert a.covers(b) == (as_set(a) >= as_set(b))


@given(ranges(), ranges())
def test_union_is_that_of_sets_or_an_error_for_a_gap(a: Versions, b: Versions) -> None:
    both = as_set(a) | as_set(b)
    if is_run(both):
        assert as_set(a | b) == both
    else:
        with pytest.raises(ValueError, match="gap"):
            a | b


@given(ranges(), ranges())
def test_difference_is_that_of_sets_or_an_error_for_a_split(a: Versions, b: Versions) -> None:
    left = as_set(a) - as_set(b)
    if is_run(left):
        assert as_set(a - b) == left
    else:
        with pytest.raises(ValueError, match="splits"):
            a - b


@given(ranges(), ranges())
def test_without_is_the_difference_in_runs_with_a_gap_between(a: Versions, b: Versions) -> None:
    runs = a.without(b)
    assert set().union(*map(as_set, runs)) == as_set(a) - as_set(b)
    assert all(runs)
    assert len(runs) < 2 or runs[0].high + 1 < runs[1].low


@given(ranges(), ranges())
def test_a_condition_tells_the_wanted_from_the_possible(
    wanted: Versions, possible: Versions
) -> None:
    test = str(VersionCondition(wanted, possible))
    for version in as_set(possible):
        assert eval(test, {"version": version}) == (version in wanted)


@pytest.mark.parametrize(
    ("wanted", "possible", "least"),
    [
        ("0+", "0-9", "True"),
        ("none", "0-9", "False"),
        ("3+", "0-9", "version >= 3"),
        ("0-3", "0-9", "version <= 3"),
        ("3", "0-9", "version == 3"),
        ("3-5", "0-9", "3 <= version <= 5"),
        ("3-9", "3-9", "True"),
        ("0-5", "3-9", "version <= 5"),
        ("9", "0-9", "version >= 9"),
    ],
)
def test_a_condition_is_the_least(wanted: str, possible: str, least: str) -> None:
    assert str(VersionCondition(Versions.parse(wanted), Versions.parse(possible))) == least


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("none", NONE),
        ("", NONE),
        ("0+", ALL),
        ("3", Versions(3, 3)),
        (" 0-2 ", Versions(0, 2)),
        ("32767", Versions(NEWEST, NEWEST)),
    ],
)
def test_ranges_are_read_as_the_dialect_writes_them(text: str, versions: Versions) -> None:
    assert Versions.parse(text) == versions


@pytest.mark.parametrize(
    "text", ["-1", "1-", "+", "1++", "0x1", "1,2", "0 - 2", "2-1", "32768", "0-99999", "None", "٣"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|backwards|int16"):
        Versions.parse(text)
