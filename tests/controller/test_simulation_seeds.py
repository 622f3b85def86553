"""The simulated quorum holds its invariants for many seeds: `make simulation`, `make soak`."""

from __future__ import annotations

import pytest

from tests.fuzzing import replayable, seeds

from .simulation import run

BLOCKS = 10
MANY = 1200
SOAKED = 800


@pytest.mark.parametrize("block", range(BLOCKS))
def test_invariants_hold_for_many_seeds(block: int) -> None:
    for seed in range(100 + block, 100 + MANY, BLOCKS):
        with replayable(seed):
            run(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("block", range(BLOCKS))
def test_invariants_hold_for_new_seeds(block: int) -> None:
    for seed in seeds(SOAKED)[block::BLOCKS]:
        with replayable(seed):
            run(10_000 + seed if seed < 10_000 else seed)
