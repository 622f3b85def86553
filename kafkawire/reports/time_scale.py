"""Divides the time of a capture into buckets, which become wider as the capture gets longer.

There are at most `MAX_BUCKETS` buckets; when they become wider, each is part of one.
"""

from __future__ import annotations

from typing import Final

_MS: Final = 10**6
_MINUTE: Final = 60_000 * _MS
_DAY: Final = 1440 * _MINUTE
WIDTHS: Final = (
    *(ms * _MS for ms in (1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000)),
    *(minutes * _MINUTE for minutes in (1, 5, 10, 30, 60, 360)),
    *(days * _DAY for days in (1, 10, 100, 1000, 10_000)),
)
"""Widths of buckets in nanoseconds; each divides the next."""

MAX_BUCKETS: Final = 300


class TimeScale:
    """The width of the buckets of the times so far."""

    def __init__(self) -> None:
        self._width = 0
        self._first: int | None = None
        self._last = 0

    @property
    def width_ns(self) -> int:
        """The width of a bucket in nanoseconds."""
        return WIDTHS[self._width]

    @property
    def is_widest(self) -> bool:
        """Whether buckets cannot become wider."""
        return self._width + 1 == len(WIDTHS)

    def include(self, time_ns: int) -> int:
        """Include a time; return the number of buckets that become one, which is 1 mostly."""
        if self._first is None:
            self._first = self._last = time_ns
            return 1
        if self._first <= time_ns <= self._last:
            return 1
        self._first, self._last = min(self._first, time_ns), max(self._last, time_ns)
        before = self.width_ns
        while (self._last - self._first) // self.width_ns >= MAX_BUCKETS and not self.is_widest:
            self._width += 1
        return self.width_ns // before

    def widen(self) -> int:
        """Make buckets wider; return the number of buckets that become one."""
        before = self.width_ns
        self._width += not self.is_widest
        return self.width_ns // before

    def bucket(self, time_ns: int) -> int:
        """Return the bucket of a time: its start is the bucket times the width."""
        return time_ns // self.width_ns
