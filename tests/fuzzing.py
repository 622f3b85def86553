"""What fuzz targets share: seeds, numbers of examples, and mutations of bytes.

A fuzz target is a test with the marker `fuzz`. `make test` runs each with fixed seeds; `make soak`
sets KAFKAWIRE_SOAK and runs that many times as many. KAFKAWIRE_SEED=7 replays seed 7 alone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")
SOAK: Final = int(os.environ.get("KAFKAWIRE_SOAK", "1"))
"""How many times as many examples are tried as in `make test`."""


def examples(count: int) -> int:
    """Return the number of Hypothesis examples: `count` in `make test`, more in `make soak`."""
    return count * SOAK


def seeds(count: int) -> Sequence[int]:
    """Return the seeds to run: the first `count`, more in `make soak`, or KAFKAWIRE_SEED alone."""
    if "KAFKAWIRE_SEED" in os.environ:
        return (int(os.environ["KAFKAWIRE_SEED"]),)
    return range(count * SOAK)


@contextmanager
def replayable(seed: int) -> Iterator[None]:
    """Add to any failure inside how to replay its seed."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}: replay with KAFKAWIRE_SEED={seed}")
        raise


def mutate(data: bytes, rng: random.Random, rounds: int = 4) -> bytes:
    """Return a copy of `data` with 1 to `rounds` random mutations; may be empty."""
    for _ in range(rng.randint(1, rounds)):
        data = rng.choice(MUTATIONS)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _remove(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.randint(1, 16) :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 16)) + data[at:]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    end = rng.randint(start, min(len(data), start + 64))
    return data[:end] + data[start:end] * rng.randint(1, 8) + data[end:]


EXTREMES: Final = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
"""Integers that lengths and counts break at."""


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randint(0, len(data))
    value = rng.choice(EXTREMES) & ((1 << 8 * width) - 1)
    return data[:at] + value.to_bytes(width, rng.choice(("big", "little"))) + data[at + width :]


MUTATIONS: Final[Sequence[Callable[[bytes, random.Random], bytes]]] = (
    _flip,
    _truncate,
    _remove,
    _insert,
    _repeat,
    _overwrite,
)


def fewest(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Leave out items, halves first, as long as what is left fails."""
    left = tuple(items)
    size = max(1, len(left) // 2)
    while True:
        at = 0
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if fails(fewer):
                left = fewer
            else:
                at += size
        if size == 1:
            return left
        size //= 2
