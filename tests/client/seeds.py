"""The seeds of the simulations of clients and brokers, the same in every run of `make test`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.fuzzing import seeds

SEEDS: Final = seeds(80)


def chunk(part: int, chunks: int) -> Sequence[int]:
    """Return one of several equal parts of the seeds."""
    return SEEDS[part * len(SEEDS) // chunks : (part + 1) * len(SEEDS) // chunks]
