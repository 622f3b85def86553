"""The mutants of groups, each with a seed of the simulation of a cluster that finds it."""

from __future__ import annotations

from typing import Final

import pytest

from ..scenario import Composition
from ..simulating import first_violation
from .mutants import MUTANTS
from .simulation import with_groups

RAFT, IN_MEMORY = Composition.RAFT, Composition.IN_MEMORY
FOUND_BY: Final[dict[str, tuple[int, Composition]]] = {
    "acknowledges before it is stored": (0, RAFT),
    "delivers without a limit": (0, RAFT),
    "acquisition locks do not end": (0, RAFT),
    "loads no updates of states": (0, RAFT),
    "snapshots without batches": (0, RAFT),
    "former leaders write states": (9, RAFT),
    "former leaders deliver": (9, IN_MEMORY),
    "accepted records return": (0, RAFT),
    "acquired records are left out": (0, RAFT),
    "anybody acknowledges": (11, IN_MEMORY),
    "partitions are not released first": (0, RAFT),
    "anybody commits": (16, RAFT),
    "commits are not logged": (4, RAFT),
    "members stay for good": (0, RAFT),
}
"""Mutant -> a seed that finds it."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(with_groups(*FOUND_BY[name])) is not None
