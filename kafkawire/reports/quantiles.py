"""Estimates quantiles in bounded memory.

The relative error of a quantile is at most 1 %, whatever the values and however many; memory
grows only with their range: nanoseconds up to a day take at most 1,600 buckets.

    bucket i counts values in (g^(i-1), g^i], g = 1.01/0.99, and stands for 2 g^i / (g + 1)

Source: C. Masson, J. E. Rim, H. K. Lee, "DDSketch", VLDB 2019, without its collapsing.
"""

from __future__ import annotations

from math import ceil, log
from typing import Final

ERROR: Final = 0.01
"""Maximum relative error of a quantile."""

_GROWTH: Final = (1 + ERROR) / (1 - ERROR)
_LOG_GROWTH: Final = log(_GROWTH)


class Quantiles:
    """A histogram of positive values with exponential buckets.

    Values of zero and less (latencies across two taps with different clocks) share one bucket.
    min, max: exact; None without values.
    """

    __slots__ = ("_buckets", "_not_positive", "max", "min")

    def __init__(self) -> None:
        self.min: int | None = None
        self.max: int | None = None
        self._not_positive = 0
        self._buckets: dict[int, int] = {}

    @property
    def count(self) -> int:
        """The number of values."""
        return self._not_positive + sum(self._buckets.values())

    def add(self, value: int) -> None:
        """Add a value."""
        if self.min is None or value < self.min:
            self.min = value
        if self.max is None or value > self.max:
            self.max = value
        if value > 0:
            bucket, buckets = ceil(log(value) / _LOG_GROWTH), self._buckets
            buckets[bucket] = buckets.get(bucket, 0) + 1
        else:
            self._not_positive += 1

    def merge(self, other: Quantiles) -> None:
        """Add the values of another."""
        if other.min is None or other.max is None:
            return
        self.min = other.min if self.min is None else min(self.min, other.min)
        self.max = other.max if self.max is None else max(self.max, other.max)
        self._not_positive += other._not_positive
        for bucket, count in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count

    def at(self, share: float) -> int | None:
        """Return the smallest value that at least this share of the values does not exceed.

        None without values.
        """
        if self.min is None or self.max is None:
            return None
        rank = max(1, ceil(share * self.count))
        passed = self._not_positive
        if rank <= passed:
            return min(self.min, 0)
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if rank <= passed:
                middle = round(2 * _GROWTH**bucket / (_GROWTH + 1))
                return min(max(middle, self.min), self.max)
        return self.max
