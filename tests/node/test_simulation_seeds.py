"""Many seeds of the simulation of a cluster, and the mutants that seeds find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from tests.fuzzing import seeds

from .mutants import MUTANTS
from .scenario import Composition, draw
from .simulating import check, first_violation

FIRST: Final = 1000
"""Seeds before it are those of other tests."""
SEEDS: Final = {Composition.RAFT: 1_200, Composition.IN_MEMORY: 800}
BLOCK: Final = 10
"""Seeds of one test."""
SOAKED: Final = 1_000
"""50,000 seeds of each composition in `make soak`."""
FOUND_BY: Final[dict[str, int]] = {
    "publishes before its registration": 390,
    "keeps the logs of deleted topics": 0,
    "keeps what was deleted while it was down": 26,
    "does not flush the metadata log": 196,
    "hands on what is not committed": 5,
    "appends without sequences": 0,
    "takes the log end for the high watermark": 19,
    "does not truncate": 11,
    "keeps its old broker epoch": 0,
    "ignores snapshots": 3,
    "handles outputs last first": 0,
    "does not report a directory that failed": 323,
    "does not report where replicas are": 323,
    "keeps the replicas of a directory that failed": 35,
}
"""Mutant -> a seed that finds it."""


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


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(draw(FOUND_BY[name])) is not None
