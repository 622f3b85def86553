"""Measures rates over windows of the past, as Kafka's `Rate`, by which quotas are enforced."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Sample:
    """The bytes, or other amounts, of one window; times in ms."""

    start: int
    last: int
    total: float = 0.0


class Rate:
    """Amounts per second, over some windows of the past; as Kafka's `Rate`. Times in ms."""

    def __init__(self, windows: int, width: int) -> None:
        self._windows = windows
        self._width = width
        self._samples: deque[Sample] = deque(maxlen=windows + 1)

    def record(self, size: float, now: int) -> None:
        """Count an amount; what turns out not to be used is counted again as negative."""
        if not self._samples or now - self._samples[-1].start >= self._width:
            self._samples.append(Sample(now, now))
        sample = self._samples[-1]
        sample.last, sample.total = now, sample.total + size

    def throttle_ms(self, quota: float, now: int) -> int:
        """Return for how long a client has to wait until its rate is the quota again."""
        samples = self._samples
        while samples and now - samples[0].last >= self._windows * self._width:
            samples.popleft()
        window = self._window(now - samples[0].start if samples else 0)
        rate = sum(each.total for each in samples) / window * 1000
        return round((rate - quota) / quota * window) if rate > quota else 0

    def _window(self, elapsed: int) -> int:
        """Return what to divide by: at least all windows but one, so that requests may be large."""
        missing = self._windows - 1 - elapsed // self._width
        return max(elapsed + max(missing, 0) * self._width, self._width)
