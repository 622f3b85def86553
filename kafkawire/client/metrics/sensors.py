"""Measures what happens over windows of time, as Kafka's clients do.

A sensor has the samples of its last windows, each with the sum, number and maximum of its
values. Samples without a value for as long as all windows take do not count.

Source: org.apache.kafka.common.metrics.stats (SampledStat, Rate, Avg, Max, CumulativeSum).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

HOUR_S: Final = 3600
NEVER: Final = -1.0


class SampleSettings(NamedTuple):
    """How long a window is (metrics.sample.window.ms), and how many there are."""

    window_s: float = 30.0
    samples: int = 2


@dataclass(slots=True)
class Sample:
    """The values of one window. start, last: when it began, and its last value."""

    start: float
    last: float
    total: float = 0.0
    count: int = 0
    highest: float = -math.inf


class Sensor:
    """The values of one measurement. total, count: of all values. last: when the last one came."""

    __slots__ = ("_samples", "_settings", "count", "last", "total")

    def __init__(self, settings: SampleSettings) -> None:
        self.total = 0.0
        self.count = 0
        self.last: float | None = None
        self._settings = settings
        self._samples: list[Sample] = []

    def record(self, value: float, now: float) -> None:
        """Add a value."""
        samples, settings = self._samples, self._settings
        if not samples or now - samples[-1].start >= settings.window_s:
            samples.append(Sample(now, now))
            del samples[: -settings.samples]
        sample = samples[-1]
        sample.last = self.last = now
        sample.total += value
        sample.count += 1
        self.total += value
        self.count += 1
        if value > sample.highest:
            sample.highest = value

    def live(self, now: float) -> list[Sample]:
        """Return the samples that count."""
        age_s = self._settings.window_s * self._settings.samples
        return [each for each in self._samples if now - each.last < age_s]

    def elapsed_s(self, live: list[Sample], now: float) -> float:
        """Return the time that samples stand for: at least that of all full windows."""
        window_s = self._settings.window_s
        elapsed = now - live[0].start if live else 0.0
        missing = self._settings.samples - 1 - int(elapsed // window_s)
        return max(elapsed + max(missing, 0) * window_s, window_s)


Stat = Callable[[Sensor, float], float]
"""(sensor, now) -> the value of a metric."""


def rate(sensor: Sensor, now: float) -> float:
    """Return the sum of the values, per second."""
    live = sensor.live(now)
    return sum(each.total for each in live) / sensor.elapsed_s(live, now)


def event_rate(sensor: Sensor, now: float) -> float:
    """Return the number of the values, per second."""
    live = sensor.live(now)
    return sum(each.count for each in live) / sensor.elapsed_s(live, now)


def event_rate_per_hour(sensor: Sensor, now: float) -> float:
    """Return the number of the values, per hour."""
    return event_rate(sensor, now) * HOUR_S


def average(sensor: Sensor, now: float) -> float:
    """Return the average; NaN without values."""
    live = sensor.live(now)
    count = sum(each.count for each in live)
    return sum(each.total for each in live) / count if count else math.nan


def maximum(sensor: Sensor, now: float) -> float:
    """Return the maximum; NaN without values."""
    return max((each.highest for each in sensor.live(now)), default=math.nan)


def total(sensor: Sensor, _now: float) -> float:
    """Return the sum of all values since the start."""
    return sensor.total


def event_count(sensor: Sensor, _now: float) -> float:
    """Return the number of all values since the start."""
    return float(sensor.count)


def seconds_ago(sensor: Sensor, now: float) -> float:
    """Return the whole seconds since the last value; -1 without values."""
    return NEVER if sensor.last is None else float(int(now - sensor.last))
