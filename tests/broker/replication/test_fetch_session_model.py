"""Fetch sessions at random: what clients know, and which rules are needed for it."""

from __future__ import annotations

import pytest

from tests.fuzzing import replayable, seeds

from .session_model import MUTANTS, run

FEW = 30
ENOUGH = 20
"""Seeds of which one finds each mutant."""


@pytest.mark.fuzz
def test_a_client_knows_every_partition_of_its_session() -> None:
    for seed in seeds(FEW):
        with replayable(seed):
            run(seed)


def finds(seed: int) -> bool:
    """Whether a seed finds what is wrong."""
    try:
        run(seed)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_some_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert any(finds(seed) for seed in range(ENOUGH))
