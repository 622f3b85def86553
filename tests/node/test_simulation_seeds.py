"""Many seeds of the simulation of a cluster, and the mutants that seeds find."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fuzzing import seeds

from .mutants import MUTANTS
from .scenario import draw
from .simulating import check, first_violation

FIRST: Final = 1000
"""Seeds before it are those of other tests."""
FOUND_BY: Final[dict[str, int]] = {}
"""Mutant -> a seed that finds it."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 20))
def test_promises_are_kept(seed: int) -> None:
    check(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(30))
def test_promises_are_kept_for_thousands_of_seeds(seed: int) -> None:
    check(seed)


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(draw(FOUND_BY[name])) is not None
