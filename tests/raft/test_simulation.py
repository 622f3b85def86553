"""Seeds of the simulation, mutants that seeds find, replay and shrinking."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fuzzing import replayable, seeds

from .checks import Violation
from .mutants import MUTANTS
from .scenarios import Scenario, scenario
from .simulation import Simulation

FOUND_BY: Final[dict[str, int]] = {
    "votes twice in an epoch": 3,
    "votes for a shorter log": 2,
    "does not persist its vote": 51,
    "does not persist its epoch": 2,
    "persists after it responds": 15,
    "commits what one voter has": 0,
    "commits what one voter too few has": 2,
    "counts what it has not flushed": 14,
    "fetches on without a flush": 10,
    "does not truncate": 2,
    "truncates to the leader's offset": 190,
    "does not compare epochs of logs": 0,
    "high watermark goes back": 0,
    "stands without pre-votes": 0,
    "counts votes of earlier states": 3,
    "leads on without a majority": 0,
    "leads its epoch again after a restart": 2,
    "leads on after its removal": 13,
}
"""A seed that finds each mutant."""


def violation(tried: Scenario) -> str | None:
    """Run a scenario; return the violation that it ends in."""
    try:
        Simulation(tried).run()
    except Violation as found:
        return str(found)
    return None


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(6))
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
