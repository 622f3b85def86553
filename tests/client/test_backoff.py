"""How long to wait after failures: growing, bounded, spread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.network.backoff import JITTER, Backoff

ALMOST_ONE = 1 - 2**-53
MIDDLE = 0.5


def test_it_doubles_up_to_the_most() -> None:
    backoff = Backoff(0.1, 1.0)
    waits = [round(backoff.after(n, lambda: MIDDLE), 9) for n in range(7)]
    assert waits == [0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(1, 10_000), st.floats(0, ALMOST_ONE))
def test_each_wait_is_spread_by_a_fifth(failures: int, drawn: float) -> None:
    backoff = Backoff(0.1, 1.0)
    middle = backoff.after(failures, lambda: MIDDLE)
    wait = backoff.after(failures, lambda: drawn)
    assert wait == pytest.approx(middle * (1 - JITTER + 2 * JITTER * drawn))
    ends = backoff.after(failures, lambda: 0.0), backoff.after(failures, lambda: ALMOST_ONE)
    assert ends[0] < middle < ends[1]


def test_a_first_wait_above_the_most_stands() -> None:
    assert Backoff(2.0, 1.0).after(5, lambda: MIDDLE) == 2.0
