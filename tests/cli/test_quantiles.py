"""Quantiles without the values: as near as is promised, whatever the values."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kafkawire.reports.quantiles import ERROR, Quantiles

from .outside import quantile

SHARES = (0.0, 0.5, 0.95, 0.99, 1.0)
DAY = 86_400 * 10**9


def of(values: list[int]) -> Quantiles:
    made = Quantiles()
    for value in values:
        made.add(value)
    return made


@given(st.lists(st.integers(-DAY, 100 * DAY) | st.integers(1, 100), min_size=1))
def test_a_quantile_is_within_one_per_cent(values: list[int]) -> None:
    made = of(values)
    for share in SHARES:
        wanted = quantile(sorted(values), share)
        found = made.at(share)
        assert found is not None
        if wanted > 0:
            # half a nanosecond more: what is printed is whole
            assert abs(found - wanted) <= ERROR * wanted + 0.5
        else:
            assert found <= 0
        assert made.min is not None
        assert made.max is not None
        assert made.min <= found <= made.max
    assert (made.count, made.min, made.max) == (len(values), min(values), max(values))


@given(st.lists(st.integers(1, DAY)), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values: list[int], random: Random) -> None:
    mixed = list(values)
    random.shuffle(mixed)
    assert [of(mixed).at(share) for share in SHARES] == [of(values).at(share) for share in SHARES]


def test_memory_does_not_grow_with_the_values() -> None:
    made = of([*range(1, DAY, DAY // 50_000), DAY])
    assert made.count > 50_000
    assert len(made._buckets) < 1700


def test_nothing_has_no_quantiles() -> None:
    assert of([]).at(0.5) is None
