"""The mutants of a cluster, each with a seed of the simulation that finds it."""

from __future__ import annotations

from typing import Final

import pytest

from .mutants import MUTANTS
from .scenario import draw
from .simulating import first_violation

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


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(draw(FOUND_BY[name])) is not None
