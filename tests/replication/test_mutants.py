"""Each rule that is removed is found by a seed of the simulation."""

from __future__ import annotations

from typing import Final

import pytest

from .mutants import MUTANTS
from .plan import draw
from .simulating import first_violation

FOUND_BY: Final[dict[str, int]] = {}
"""Mutant -> the first seed that finds it."""


def test_every_mutant_has_a_seed() -> None:
    assert FOUND_BY.keys() == MUTANTS.keys()
    assert len(FOUND_BY) >= 15


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_seed_finds_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = draw(FOUND_BY[name])
    MUTANTS[name](monkeypatch)
    assert first_violation(plan) is not None
