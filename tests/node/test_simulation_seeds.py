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
FOUND_BY: Final[dict[str, int]] = {
    "publishes before its registration": 13,
    "keeps the logs of deleted topics": 0,
    "keeps what was deleted while it was down": 72,
    "does not flush the metadata log": 112,
    "hands on what is not committed": 7,
    "appends without sequences": 0,
    "does not truncate": 3,
    "keeps its old broker epoch": 0,
    "ignores snapshots": 12,
    "handles outputs last first": 0,
    "does not report a directory that failed": 5,
    "does not report where replicas are": 5,
    "keeps the replicas of a directory that failed": 5,
}
"""Mutant -> a seed that finds it."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 40))
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
