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

AT_ONCE: Final = 16
"""Values that are added to buckets together."""

_GROWTH: Final = (1 + ERROR) / (1 - ERROR)
_LOG_GROWTH: Final = log(_GROWTH)


class Quantiles:
    """A histogram of positive values with exponential buckets.

    Values of zero and less (latencies across two taps with different clocks) share one bucket.
    min, max: exact; None without values.
    """

    __slots__ = ("_buckets", "_max", "_min", "_new", "_not_positive")

    def __init__(self) -> None:
        self._min: int | None = None
        self._max: int | None = None
        self._not_positive = 0
        self._buckets: dict[int, int] = {}
        self._new: list[int] = []  # values that are in no bucket yet

    @property
    def min(self) -> int | None:
        """The smallest value."""
        self._fill_buckets()
        return self._min

    @property
    def max(self) -> int | None:
        """The largest value."""
        self._fill_buckets()
        return self._max

    @property
    def count(self) -> int:
        """The number of values."""
        return self._not_positive + sum(self._buckets.values()) + len(self._new)

    def add(self, value: int) -> None:
        """Add a value."""
        new = self._new
        new.append(value)
        if len(new) >= AT_ONCE:
            self._fill_buckets()

    def _fill_buckets(self) -> None:
        """Add the new values to buckets."""
        new = self._new
        if not new:
            return
        least, most, buckets = min(new), max(new), self._buckets
        if self._min is None or least < self._min:
            self._min = least
        if self._max is None or most > self._max:
            self._max = most
        for value in new:
            if value > 0:
                bucket = ceil(log(value) / _LOG_GROWTH)
                buckets[bucket] = buckets.get(bucket, 0) + 1
            else:
                self._not_positive += 1
        new.clear()

    def merge(self, other: Quantiles) -> None:
        """Add the values of another."""
        other_min, other_max = other.min, other.max
        if other_min is None or other_max is None:
            return
        self._fill_buckets()
        self._min = other_min if self._min is None else min(self._min, other_min)
        self._max = other_max if self._max is None else max(self._max, other_max)
        self._not_positive += other._not_positive
        for bucket, count in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count

    def at(self, share: float) -> int | None:
        """Return the smallest value that at least this share of the values does not exceed.

        None without values.
        """
        self._fill_buckets()
        if self._min is None or self._max is None:
            return None
        rank = max(1, ceil(share * self.count))
        passed = self._not_positive
        if rank <= passed:
            return min(self._min, 0)
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if rank <= passed:
                middle = round(2 * _GROWTH**bucket / (_GROWTH + 1))
                return min(max(middle, self._min), self._max)
        return self._max
