"""The times in front of lines about packets, in nanoseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

TIME: Final = re.compile(
    r"(?:\s{0,10}\d{1,10} +|\s{1,10}Epoch (?:Arrival )?Time: )?"
    r"(?:(?P<date>\d{4}-\d\d-\d\d )?(?P<time>\d\d:\d\d:\d\d)|(?P<seconds>\d{1,10}))"
    r"\.(?P<fraction>\d{3,9})\s"
)
"""The time in front of a line; tshark has the number of the packet before it, or what it is."""
DAY_NS: Final = 86_400 * 10**9
END_OF_TIME_NS: Final = 1 << 63


def seconds_ns(seconds: str, fraction: str) -> int | None:
    """Return the nanoseconds of digits; None if there are too many."""
    time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    return time_ns if time_ns < END_OF_TIME_NS else None


class Times:
    """Reads the times in front of lines; those without a date begin in 1970."""

    def __init__(self) -> None:
        self._last_ns = 0
        self._days = 0

    def read(self, line: str) -> int | None:
        """Return the time in front of a line, in nanoseconds; None if there is none."""
        match = TIME.match(line)
        if match is None:
            return None
        if match["seconds"]:
            return seconds_ns(match["seconds"], match["fraction"])
        try:
            day = datetime.fromisoformat((match["date"] or "1970-01-01 ") + match["time"])
        except ValueError:  # such as 25:00:00
            return None
        seconds = max(0, int(day.replace(tzinfo=UTC).timestamp()))
        time_ns = seconds_ns(str(seconds), match["fraction"])
        return time_ns if match["date"] or time_ns is None else self._undated(time_ns)

    def _undated(self, time_ns: int) -> int:
        """Add the midnights that have passed: where times jump by more than half a day."""
        if time_ns < self._last_ns - DAY_NS // 2:
            self._days += 1
        elif time_ns > self._last_ns + DAY_NS // 2:
            self._days = max(0, self._days - 1)
        self._last_ns = time_ns
        return time_ns + self._days * DAY_NS
