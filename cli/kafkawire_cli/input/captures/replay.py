"""Replays the messages of a finished capture at the speed at which they were captured.

A message is counted when its time has come, never earlier; messages whose time goes back, or
that are counted late, do not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.reports.windows import SECOND, Windows

if TYPE_CHECKING:
    from kafkawire.capture.rows import Located
    from kafkawire.reports.reading import Reading

MAX_GAP_NS: Final = 60 * SECOND
"""Longer gaps between two messages are replayed as this one."""


class Replay:
    """The time of a capture that is replayed.

    speed: seconds of the capture per second. clock: monotonic seconds. pause: waits for so many
    seconds at most, and returns False if the replay ends.
    """

    def __init__(
        self, speed: float, clock: Callable[[], float], pause: Callable[[float], bool]
    ) -> None:
        self._speed = speed
        self._clock = clock
        self._pause = pause
        self._last_ns = NO_TIME
        self._due = 0.0

    def until(self, time_ns: int) -> None:
        """Wait until the time of a message has come."""
        if self._last_ns == NO_TIME:
            self._due = self._clock()
        else:
            gap_ns = min(max(time_ns - self._last_ns, 0), MAX_GAP_NS)
            self._due += gap_ns / SECOND / self._speed
        self._last_ns = max(time_ns, self._last_ns)
        while (rest := self._due - self._clock()) > 0 and self._pause(rest):
            pass

    def since(self) -> float:
        """Return the seconds of the capture since the last message that was counted."""
        behind = self._due - self._clock()
        return 0.0 if behind > 0 else -behind * self._speed


class ReplayedWindows(Windows):
    """Windows whose messages are counted as a replay goes on."""

    def __init__(self, reading: Reading, seconds: int, replay: Replay) -> None:
        super().__init__(reading, seconds)
        self._replay = replay

    def row(self, located: Located) -> None:
        """Count a request as in flight, once its time has come."""
        if located.row.time_ns != NO_TIME:
            self._replay.until(located.row.time_ns)
        super().row(located)
