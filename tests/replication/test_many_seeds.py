"""Clusters with faults in virtual time: `make simulation`, more in `make soak`."""

from __future__ import annotations

import pytest

from tests.fuzzing import seeds

from .simulating import check

BLOCK = 10


@pytest.mark.parametrize("first", range(0, 100, BLOCK))
def test_promises_are_kept(first: int) -> None:
    """Each block of seeds is one test, so that workers share them; soaking has further ones."""
    found = seeds(BLOCK)
    for seed in found:
        check(seed if len(found) == 1 else first * max(1, len(found) // BLOCK) + seed)
