"""Seeds of the simulation, mutants that seeds find, replay and shrinking."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fuzzing import replayable, seeds

from .checks import Violation
from .mutants import MUTANTS
from .scenarios import Scenario, scenario, shrink
from .simulation import Simulation

FOUND_BY: Final[dict[str, int]] = {}
"""A seed that finds each mutant."""


def violation(tried: Scenario) -> str | None:
    """Run a scenario; return the violation that it ends in."""
    try:
        Simulation(tried).run()
    except Violation as found:
        return str(found)
    return None


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(8))
def test_the_invariants_hold(seed: int) -> None:
    with replayable(seed):
        Simulation(scenario(seed)).run()


def test_a_seed_gives_the_same_trace_twice() -> None:
    traces = [Simulation(scenario(5)).run() for _ in range(2)]
    assert traces[0] == traces[1]
    assert Simulation(scenario(6)).run() != traces[0]


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_each_broken_rule(name: str) -> None:
    with MUTANTS[name]():
        assert violation(scenario(FOUND_BY[name])) is not None


def test_every_mutant_has_its_seed() -> None:
    assert set(FOUND_BY) == set(MUTANTS)
    assert len(MUTANTS) >= 12


def test_what_finds_mutants_finds_nothing_in_the_rules_themselves() -> None:
    for seed in set(FOUND_BY.values()):
        assert violation(scenario(seed)) is None, seed
