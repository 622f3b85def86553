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
    "acquisition locks do not end": (2, RAFT),
    "loads no updates of states": (3, IN_MEMORY),
    "snapshots without batches": (0, RAFT),
    "former leaders write states": (39, IN_MEMORY),
    "former leaders deliver": (15, IN_MEMORY),
    "accepted records return": (0, RAFT),
    "acquired records are left out": (0, RAFT),
    "anybody acknowledges": (23, IN_MEMORY),
}
"""Mutant -> a seed that finds it."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str) -> None:
    with MUTANTS[name]():
        assert first_violation(with_groups(*FOUND_BY[name])) is not None
