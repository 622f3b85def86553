"""Computes how long to wait after the n-th failure in a row.

The wait grows exponentially up to a maximum, with jitter, so that clients that failed together
do not retry together; randomness comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Rng = Callable[[], float]
"""Returns a random number from 0 up to, not including, 1."""

FACTOR: Final = 2.0
JITTER: Final = 0.2
HIGHEST_POWER: Final = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter (KIP-580): first_s doubles to most_s, each spread by 20 %."""

    first_s: float
    most_s: float

    def after(self, failures: int, rng: Rng) -> float:
        """Return the seconds to wait after that many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        power = min(failures - 1, HIGHEST_POWER)
        plain = min(self.first_s * FACTOR**power, max(self.first_s, self.most_s))
        return plain * (1 - JITTER + 2 * JITTER * rng())
