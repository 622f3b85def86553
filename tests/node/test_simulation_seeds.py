"""Many seeds of the simulation of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from tests.fuzzing import seeds

from .scenario import Composition
from .simulating import check

FIRST: Final = 1000
"""Seeds before it are those of other tests."""
SEEDS: Final = {Composition.RAFT: 1_200, Composition.IN_MEMORY: 800}
BLOCK: Final = 10
"""Seeds of one test."""
SOAKED: Final = 1_000
"""50,000 seeds of each composition in `make soak`."""


def blocks(numbers: Sequence[int]) -> list[Sequence[int]]:
    """Divide seeds: each block is one test."""
    return [numbers[at : at + BLOCK] for at in range(0, len(numbers), BLOCK)]


@pytest.mark.parametrize(
    ("composition", "block"),
    [
        (each, block)
        for each, count in SEEDS.items()
        for block in blocks(range(FIRST, FIRST + count))
    ],
    ids=str,
)
def test_promises_are_kept(composition: Composition, block: Sequence[int]) -> None:
    for seed in block:
        check(seed, composition)


@pytest.mark.fuzz
@pytest.mark.parametrize("block", blocks(seeds(SOAKED)))
@pytest.mark.parametrize("composition", Composition)
def test_promises_are_kept_for_many_seeds(composition: Composition, block: Sequence[int]) -> None:
    for seed in block:
        check(seed, composition)
