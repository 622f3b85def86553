"""Finds the most frequent values in bounded memory.

A sketch has at most `COUNTERS` values. What it counts of a value is at most `error` less than its
weight, and never more; `error` is at most the weight of all values divided by `COUNTERS`, and a
value that is not in the sketch has no more weight than that.

    counts + a batch's --> more than COUNTERS? --> the largest one that has no place is subtracted
                                                   from each; those at 0 are forgotten

Source: J. Misra, D. Gries, "Finding Repeated Elements", 1982, in batches as P. Agarwal et al.,
"Mergeable Summaries", PODS 2012, who show that it is the same as Space-Saving but for a shift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

COUNTERS: Final = 64
"""Values in a sketch: the error is at most a 64th of the weight."""


class HeavyHitters:
    """A sketch of the most frequent values. weight: of all values; error: see the module."""

    __slots__ = ("_counts", "error", "weight")

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self.weight = self.error = 0

    def __contains__(self, value: bytes) -> bool:
        return value in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, counts: Mapping[bytes, int], weight: int = 1) -> None:
        """Add values that were counted. weight: how often each of them counts."""
        own = self._counts
        for value, count in counts.items():
            own[value] += count * weight
            self.weight += count * weight
        if len(own) > COUNTERS:
            least = own.most_common(COUNTERS + 1)[-1][1]
            self.error += least
            self._counts = Counter(
                {value: count - least for value, count in own.items() if count > least}
            )

    def largest(self, count: int) -> list[tuple[bytes, int]]:
        """Return the most frequent values with the least that their weight is, largest first."""
        return self._counts.most_common(count)
