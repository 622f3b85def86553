"""Takes figures: rounds, loops, medians and ranges.

A figure is a median over rounds; inside a round each contender gets its best of a few loops,
and each round begins with another contender.

    round 1: A A A  B B B  C C C     best of each
    round 2: B B B  C C C  A A A     best of each     -> median of the bests, lowest, highest
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

LOOPS: Final = 3
"""Loops of a contender in one round."""

LOOP_SECONDS: Final = 0.02
"""About how long one loop lasts."""


class Figure(NamedTuple):
    """The figure of a contender for a case: the median over rounds, and the extremes."""

    suite: str
    case: str
    contender: str
    unit: str
    median: float
    low: float
    high: float

    def scaled(self, factor: float) -> Figure:
        """Multiply the values."""
        return self._replace(
            median=self.median * factor, low=self.low * factor, high=self.high * factor
        )


def figure(suite: str, case: str, contender: str, unit: str, values: Sequence[float]) -> Figure:
    """Sum up the values of the rounds."""
    return Figure(suite, case, contender, unit, median(values), min(values), max(values))


def interleave(
    suite: str, case: str, contenders: Mapping[str, Callable[[], object]], rounds: int
) -> list[Figure]:
    """Time calls, the contenders taking turns; figures are in microseconds a call."""
    repeats = {name: repeats_for(call) for name, call in contenders.items()}
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name in rotated(contenders, turn):
            gc.collect()
            loops = [seconds(contenders[name], repeats[name]) for _ in range(LOOPS)]
            values[name].append(min(loops) / repeats[name] * 1e6)
    return [figure(suite, case, name, "µs", taken) for name, taken in values.items()]


def rotated(names: Iterable[str], turn: int) -> list[str]:
    """Order contenders for a round: in as many rounds as contenders each is first once."""
    order = list(names)
    first = turn % len(order)
    return order[first:] + order[:first]


def repeats_for(call: Callable[[], object]) -> int:
    """Find the number of calls in about LOOP_SECONDS; this also warms up the contender."""
    repeats = 1
    while (taken := seconds(call, repeats)) < LOOP_SECONDS / 4:
        repeats *= 2
    return max(1, round(repeats * LOOP_SECONDS / taken))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Time a number of calls with the cyclic GC enabled, as in a program."""
    turns = range(repeats)
    start = perf_counter()
    for _ in turns:
        call()
    return perf_counter() - start
