"""Many seeds of the simulation, and the shrinking of one that fails."""

from __future__ import annotations

import pytest

from tests.fuzzing import replayable, seeds

from .mutants import MUTANTS
from .scenarios import scenario, shrink
from .simulation import Simulation
from .test_simulation import FOUND_BY, violation

FIRST = 1000
"""Seeds before it are those of other tests."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 30))
def test_the_invariants_hold(seed: int) -> None:
    with replayable(seed):
        Simulation(scenario(seed)).run()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(100))
def test_the_invariants_hold_for_thousands(seed: int) -> None:
    with replayable(seed):
        Simulation(scenario(seed)).run()


@pytest.mark.parametrize("seed", sorted(set(FOUND_BY.values())))
def test_what_finds_a_mutant_finds_nothing_without_it(seed: int) -> None:
    assert violation(scenario(seed)) is None


def test_a_failing_seed_is_shrunk() -> None:
    name = "commits what one voter has"
    failing = scenario(FOUND_BY[name])
    with MUTANTS[name]():
        small = shrink(failing, lambda tried: violation(tried) is not None, attempts=40)
        assert violation(small) == violation(small) is not None
    assert len(small.happenings) < len(failing.happenings) / 3
    assert small.duration <= failing.duration
    assert violation(small) is None
