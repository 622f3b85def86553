"""The mutants of pipelines, each with a seed of the simulation of a cluster that finds it."""

from __future__ import annotations

from typing import Final

import pytest

from ..simulating import first_violation
from .mutants import MUTANTS
from .simulation import with_pipeline

FOUND_BY: Final[dict[str, int]] = {
    "shows what is not committed": 2,
    "lists no aborted transactions": 2,
    "anybody commits in transactions": 5,
    "forgets prepared transactions": 4,
    "commits offsets of aborted transactions": 2,
    "transactions do not expire": 5,
    "active tasks are not released first": 43,
}
"""Mutant -> a seed that finds it."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(with_pipeline(FOUND_BY[name])) is not None
